"""What a function reads while it is recorded, besides tensors: a program is valid only while this stays the same.

A profile hook sees each Python function that the recorded one calls. The names in its code say which globals, closure
variables and attributes it can read; their values are noted when it is entered, so before it can change them. Only what
outlives the call is watched: what the recorded function, its arguments, globals and closures lead to.
"""

from __future__ import annotations

import dis
import functools
import itertools
import os
import sys
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from operator import is_
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)  # fmt: skip
from typing import Any, NamedTuple

import numpy as np

from .._core import Tensor
from . import compared

__all__ = ["UNWATCHED", "Guards"]

# How the files of functions begin whose own state is no part of what is recorded.
UNWATCHED = {"<frozen importlib", os.path.dirname(__file__)}

_MOST = 100_000  # values, and bytes of an array: comparing more at each call would cost more than it saves
_IN_C = (GetSetDescriptorType, MemberDescriptorType)
_WITHOUT_NAMES = {"getattr", "hasattr", "vars", "dir", "globals", "locals", "eval", "exec", "attrgetter"}
_WRITES = {"append", "appendleft", "extend", "insert", "add", "update", "clear", "discard"}
_HEAP_TYPE = 1 << 9  # the flag of classes whose attributes can change


class _Names(NamedTuple):
    """What a code object can read: globals, attributes, and whether there may be attributes that it does not name."""

    modules: frozenset[str]  # that it imports
    read_globals: frozenset[str]
    attributes: frozenset[str]
    any_attribute: bool
    only_written: frozenset[str] = frozenset()  # variables and attributes to which it only adds


@functools.lru_cache(maxsize=4096)
def _names_in(code: CodeType) -> _Names:
    modules: set[str] = set()
    read_globals: set[str] = set()
    attributes: set[str] = set()
    read: set[Any] = set()
    written: set[Any] = set()
    instructions = [each for each in dis.get_instructions(code) if each.opname != "CACHE"]
    for each, after in itertools.pairwise(instructions):
        if each.opname.startswith("LOAD") and each.opname != "LOAD_CONST":
            is_written = after.opname in ("LOAD_ATTR", "LOAD_METHOD") and after.argval in _WRITES
            names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
            (written if is_written and len(names) == 1 else read).update(names)
        if each.opcode in dis.hasname and each.opname.startswith(("LOAD", "IMPORT_FROM")):
            is_global = "GLOBAL" in each.opname or each.opname == "LOAD_NAME"
            (read_globals if is_global else attributes).add(each.argval)
        elif each.opname == "IMPORT_NAME":
            modules.add(each.argval)
    any_attribute = bool(read_globals & _WITHOUT_NAMES) or bool(attributes & {"__dict__", "attrgetter"})
    if any_attribute:
        texts = {text for text in code.co_consts if isinstance(text, str) and text.isidentifier()}
        attributes |= texts
        read_globals |= texts if "globals" in read_globals else set()
    return _Names(
        frozenset(modules), frozenset(read_globals), frozenset(attributes), any_attribute, frozenset(written - read)
    )


_NO_NAMES = _Names(frozenset(), frozenset(), frozenset(), False)


class Guards:
    """The values that one recording of a function has read.

    Examples
    --------
    >>> class Config: scale = 2.0
    >>> guards = Guards()
    >>> def scaled(config, x): return x * config.scale
    >>> guards.note_reads(lambda: scaled(Config, 3.0), scaled, (Config, 3.0))
    6.0
    >>> guards.finish()
    >>> guards.change()
    >>> Config.scale = 3.0
    >>> guards.change()
    'scale'
    """

    def __init__(self) -> None:
        self._names: dict[int, tuple[Callable, Any, dict[str, Any]]] = {}  # of dicts and classes: get, owner, values
        self._holders: dict[Any, tuple[Any, Callable, str, Any]] = {}  # owner, what reads it, name, value
        self._last: list[tuple[Callable, tuple[str, ...], tuple]] = []
        self._values = 0
        self._scan: _Scan | None = None

    def note_reads(self, call: Callable[[], Any], function: Any, arguments: Any) -> Any:
        """The result of `call`, which calls the function or goes backward through what that recorded.

        Raises
        ------
        ValueError
            When there is too much to be compared at each call.
        """
        self._scan = self._scan or _Scan(self, getattr(function, "__code__", None))
        self._scan.add_roots(function, arguments)
        before: Any = sys.getprofile()
        sys.setprofile(self._scan.hook if not callable(before) else _both(self._scan.hook, before))
        try:
            return call()
        finally:
            sys.setprofile(None)
            if hasattr(before, "enable"):  # cProfile, whose hook is not a function
                before.enable()
            else:
                sys.setprofile(before)

    def finish(self) -> None:
        """Forget what only the recording needs."""
        self._scan = None
        self._last = [(get, tuple(values), tuple(values.values())) for get, _, values in self._names.values()]

    def change(self) -> str | None:
        """The name of a value that is not what it was; None while all are."""
        for get, names, values in self._last:
            if not all(map(is_, map(get, names, itertools.repeat(compared.ABSENT)), values)):
                for name, then in zip(names, values, strict=True):
                    if not compared.is_same(get(name, compared.ABSENT), then):
                        return name
        for owner, read, name, then in self._holders.values():
            if not compared.is_same(read(owner), then):
                return name
        return None

    def note_name(self, owner: Any, get: Callable, name: str, value: Any) -> None:
        """Watch a name of a dict or a class; the first value counts."""
        values = self._names.setdefault(id(owner), (get, owner, {}))[2]
        if name in values or (id(owner), name) in self._holders:
            return
        if not isinstance(value, Tensor):
            values[name] = value
            self._count(1)
        elif not value.device.startswith("meta"):  # else it is one of the program's inputs
            self.note(owner, functools.partial(compared.named, get, name), name)

    def note(self, owner: Any, read: Callable, name: str) -> None:
        """Watch what `read` makes of the owner; the first value counts."""
        key = (id(owner), name)
        if key not in self._holders:
            value = read(owner)
            self._holders[key] = (owner, read, name, value)
            self._count(len(value) if isinstance(value, (tuple, bytes, frozenset)) else 1)

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > _MOST:
            raise ValueError(
                f"[compile] it reads more than {_MOST} numbers or objects outside of tensors, too many to compare at "
                "each call; pass them as tensors"
            )


def _both(one: Callable, other: Callable) -> Callable:
    def hook(frame: FrameType, event: str, argument: Any) -> None:
        one(frame, event, argument)
        other(frame, event, argument)

    return hook


class _Scan:
    """Follows the calls of one recording, and tells `Guards` what they can read."""

    def __init__(self, guards: Guards, first: CodeType | None):
        self._guards = guards
        self._first = first  # what is recorded
        self._lasting: set[int] = set()  # objects that outlive the call
        self._seen: set[tuple[int, _Names, bool]] = set()
        self._alive: list[Any] = []  # so that no other object gets the id of one that was seen
        self._functions: dict[CodeType, dict[int, FunctionType]] = {}
        self._classes: set[type] = set()

    def add_roots(self, function: Any, arguments: Any) -> None:
        """What outlives the call: the function and the objects among its arguments, but not lists of them."""
        self._visit(function, _NO_NAMES, True)
        left = [arguments]
        while left:
            value = left.pop()
            if type(value) is dict:
                left += value.values()
            elif isinstance(value, (tuple, list)):
                left += value
            else:
                self._visit(value, _NO_NAMES, True)

    def hook(self, frame: FrameType, event: str, _: Any) -> None:
        """Look around where a Python function is entered."""
        code = frame.f_code
        if event != "call" or (code.co_filename.startswith(tuple(UNWATCHED)) and code is not self._first):
            return
        names = _names_in(code)
        for name in names.read_globals:
            self._name(frame.f_globals, frame.f_globals.get, name, frame.f_globals.get(name, compared.ABSENT), names)
        for name in names.modules:
            for full in (name, name.partition(".")[0], f"{frame.f_globals.get('__package__')}.{name}"):
                self._visit(sys.modules.get(full), names, True)
        for function in self._functions.get(code, {}).copy().values():
            self._guards.note(function, compared.definition, function.__name__)
            defaults = function.__defaults__ or ()
            by_place = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
            for name, value in (*zip(by_place, defaults, strict=True), *(function.__kwdefaults__ or {}).items()):
                self._visit_named(name, value, names, True)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                self._guards.note(cell, compared.cell, name)
                self._visit_named(name, compared.content(cell), names, True)
        for name, value in list(frame.f_locals.items()):
            self._visit_named(name, value, names, False)

    def _name(self, owner: Any, get: Callable, name: str, value: Any, names: _Names) -> None:
        self._guards.note_name(owner, get, name, value)
        self._visit_named(name, value, names, True)

    def _visit_named(self, name: str, value: Any, names: _Names, lasts: bool) -> None:
        """Visit what has a name, unless it is a container that the code only adds to."""
        if name not in names.only_written or type(value) not in (list, dict, set, deque):
            self._visit(value, names, lasts)

    def _visit(self, value: Any, names: _Names, lasts: bool) -> None:
        """Look into a value that code with these names can use."""
        if value is compared.ABSENT or isinstance(
            value, (Tensor, float, np.generic, BuiltinFunctionType, *compared.PLAIN)
        ):
            return
        lasts = lasts or id(value) in self._lasting
        mark = (id(value), names, lasts)
        if mark in self._seen:
            return
        self._seen.add(mark)
        self._alive.append(value)
        if lasts:
            self._lasting.add(id(value))
        own = getattr(value, "__dict__", None) if callable(value) else None
        if own and "__wrapped__" in own:
            self._visit(own["__wrapped__"], names, lasts)
        if isinstance(value, FunctionType):
            if lasts:
                self._functions.setdefault(value.__code__, {})[id(value)] = value
        elif isinstance(value, ModuleType):
            for name in names.attributes & vars(value).keys():
                self._name(vars(value), vars(value).get, name, vars(value)[name], names)
        elif isinstance(value, type):
            self._class(value)
            for name in names.attributes:
                self._of_class(value, name, names)
        elif isinstance(value, (np.ndarray, bytearray, memoryview, array)):
            if lasts:
                self._guards.note(value, compared.array, "an array")
                self._guards._count(np.asarray(value).nbytes)
        elif isinstance(value, ContextVar):
            self._guards.note(value, compared.variable, value.name)
            self._visit(value.get(compared.ABSENT), names, lasts)
        else:
            for part in self._parts(value, lasts):
                self._visit(part, names, lasts)
            self._instance(value, names, lasts)

    def _parts(self, value: Any, lasts: bool) -> list[Any]:
        if isinstance(value, (dict, MappingProxyType)):
            if lasts:
                self._guards.note(value, compared.items, "a dict")
            return list(value.values())
        if isinstance(value, (tuple, list, deque, set, frozenset)):
            if lasts and not isinstance(value, (tuple, frozenset)):
                self._guards.note(value, frozenset if isinstance(value, set) else compared.elements, "a list or a set")
            return list(value)
        if isinstance(value, MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, functools.partial):
            return [value.func, value.args, value.keywords]
        if isinstance(value, weakref.ref):
            return [value()]
        return []

    def _instance(self, value: Any, names: _Names, lasts: bool) -> None:
        self._class(type(value))
        try:
            own = object.__getattribute__(value, "__dict__")
        except AttributeError:
            own = None
        for name in names.attributes | (own.keys() if own and names.any_attribute else set()):
            each = compared.ABSENT if own is None else own.get(name, compared.ABSENT)
            if each is not compared.ABSENT:
                if lasts:
                    self._guards.note_name(own, own.get, name, each)
                self._visit_named(name, each, names, lasts)
                continue
            found = self._of_class(type(value), name, names)
            if lasts and own is not None and (found is not compared.ABSENT or names.any_attribute):
                self._guards.note_name(own, own.get, name, compared.ABSENT)
            is_in_c = isinstance(value, threading.local) or (
                isinstance(found, property) and not isinstance(found.fget, FunctionType)
            )
            if lasts and (is_in_c or isinstance(found, _IN_C)) and not name.startswith("__"):
                self._guards.note(value, functools.partial(compared.attribute, name), name)
                self._visit(getattr(value, name, compared.ABSENT), names, lasts)

    def _of_class(self, kind: type, name: str, names: _Names) -> Any:
        """What a class has under a name. It is also watched that no subclass overrides it later."""
        order = [each for each in kind.__mro__ if each.__flags__ & _HEAP_TYPE or name in each.__dict__]
        for place, each in enumerate(order):
            if name in each.__dict__:
                for earlier in order[: place + 1]:
                    if earlier.__flags__ & _HEAP_TYPE:
                        get = earlier.__dict__.get
                        self._guards.note_name(earlier, get, name, get(name, compared.ABSENT))
                self._visit(each.__dict__[name], names, True)
                return each.__dict__[name]
        return compared.ABSENT

    def _class(self, kind: type) -> None:
        """Register the functions of a class: some are called implicitly, such as `__call__`."""
        for each in kind.__mro__:
            if each in self._classes or not each.__flags__ & _HEAP_TYPE:
                continue
            self._classes.add(each)
            for value in list(each.__dict__.values()):
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                elif isinstance(value, (property, functools.cached_property)):
                    value = value.fget if isinstance(value, property) else value.func
                if isinstance(value, FunctionType):
                    self._visit(value, _NO_NAMES, True)
