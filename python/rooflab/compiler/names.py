"""What a code object can read, by the names in it."""

from __future__ import annotations

import dis
import functools
import itertools
from types import CodeType
from typing import Any, NamedTuple

__all__ = ["NO_NAMES", "Names", "names_in"]

# What reads by names that are values: of attributes, of globals, of modules.
_ATTRIBUTES = {"getattr", "hasattr", "vars", "dir", "globals", "locals", "eval", "exec", "attrgetter", "methodcaller",
               "f_globals", "f_locals", "__dict__", "__getattribute__"}  # fmt: skip
_WITH_NAME = {"getattr", "hasattr"}  # those of them that are given a name, as their second argument
_GLOBALS = {"globals", "f_globals"}
_MODULES = {"__import__", "import_module"}
_WRITES = {"append", "appendleft", "extend", "insert", "add", "update", "clear", "discard"}


class Names(NamedTuple):
    """What a code object can read: globals, attributes, and whether there may be attributes that it does not name."""

    modules: frozenset[str]  # that it imports
    read_globals: frozenset[str]
    attributes: frozenset[str]
    any_attribute: bool
    only_written: frozenset[str] = frozenset()  # variables and attributes to which it only adds
    texts: frozenset[str] = frozenset()  # that may be names
    only_there: bool = False  # whether it is of no interest that an attribute is absent

    def with_any(self) -> Names:
        """The same for code that also reads attributes by names that are values."""
        return self._replace(any_attribute=True, attributes=self.attributes | self.texts)


@functools.lru_cache(maxsize=4096)
def names_in(code: CodeType) -> Names:
    """The names in a code object.

    Examples
    --------
    >>> sorted(names_in((lambda x: x.scale * factor).__code__).attributes)
    ['scale']
    """
    modules: set[str] = set()
    read_globals: set[str] = set()
    attributes: set[str] = set()
    read: set[Any] = set()
    written: set[Any] = set()
    is_computed = False
    instructions = [each for each in dis.get_instructions(code) if each.opname not in ("CACHE", "PRECALL")]
    for i, (each, after) in enumerate(itertools.pairwise(instructions)):
        if each.opname.startswith("LOAD") and each.opname != "LOAD_CONST":
            is_written = after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _WRITES
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            (written if is_written and len(names) == 1 else read).update(names)
        if each.opcode in dis.hasname and each.opname.startswith(("LOAD", "IMPORT_FROM")):
            is_global = "GLOBAL" in each.opname or each.opname == "LOAD_NAME"
            (read_globals if is_global else attributes).add(each.argval)
            constant = _second_argument(instructions[i + 1 :]) if is_global and each.argval in _WITH_NAME else None
            if constant:
                attributes.add(constant)
            is_computed |= (constant or each.argval) in _ATTRIBUTES
        elif each.opname == "IMPORT_NAME":
            modules.add(each.argval)
    named = read_globals | attributes
    texts = {text for text in code.co_consts if isinstance(text, str)}
    if named & _MODULES:
        modules |= texts
    texts = {text for text in texts if text.isidentifier()}
    if named & _GLOBALS:
        read_globals |= texts
    found = Names(
        frozenset(modules),
        frozenset(read_globals),
        frozenset(attributes),
        any_attribute=False,
        only_written=frozenset(written - read),
        texts=frozenset(texts),
    )
    return found.with_any() if is_computed else found


def _second_argument(instructions: list[dis.Instruction]) -> str | None:
    """The text that a call has as its second argument, by what follows once the function is on the stack.

    None where it is computed, where the function is not called there, and where an argument has branches.
    """
    text, depth = None, 0  # of the stack, above the function
    for each in instructions:
        if each.opname == "CALL" and each.arg == depth:
            return text
        if depth < 0 or each.opcode in dis.hasjrel or each.opcode in dis.hasjabs:
            return None
        is_text = depth == 1 and each.opname == "LOAD_CONST" and isinstance(each.argval, str)
        # A call takes the function and what binds it, too. (In 3.11 PRECALL, which is left out here, takes some.)
        depth += -1 - (each.arg or 0) if each.opname == "CALL" else dis.stack_effect(each.opcode, each.arg, jump=False)
        if depth == 2:  # this has made the second argument
            text = each.argval if is_text else None
    return None


NO_NAMES = Names(frozenset(), frozenset(), frozenset(), False)
