"""Which kernels have a line that is felt outside: one that stores there, prints, asserts or traps.

Outside is what belongs neither to the thread nor to its block.

The compiler leaves out a store that changes nothing (`y[i] *= 1.0f`), so its assembly does not tell. This reads its
form of the functions before that (-fdump-tree-forwprop1), where addresses of variables are known as such. In doubt a
kernel stores: to dynamic shared memory, say, and where a function of a class changes its object.
"""

from __future__ import annotations

import re

_FUNCTION = re.compile(r"^;; Function (.+) \(\S+, funcdef_no=.*\n((?:(?!;; Function ).*\n?)*)", re.MULTILINE)
_CALLED = re.compile(
    r"\s(rl_at_atomic|rl_matrix_product|rl_printf|rl_assertion_failed|rl_trap|memcpy|memmove|memset) \("
)
_STORE = re.compile(r"  (?!#)(\S.*?) =(?: ?\{v\})? (?!\{CLOBBER|\.DEFERRED_INIT)")
_REGISTER = re.compile(r"[\w.$]*_\d+(\(D\))?")
# A store to a variable begins with its name, or has its address; one through a pointer has neither.
_VARIABLE = re.compile(r"(?:MEM\b[^&]*&)?(D\.\d+|[A-Za-z_$][\w$]*(?:\.\d+)?)(?!->)\b")
_DECLARED = re.compile(r"^  [^=;]*?([\w.$]+)(?:\[\d*\])*(?: = .*)?;$", re.MULTILINE)


def storing(dump: str, kernels: int) -> list[bool]:
    """Of each kernel, whether it or a function that it calls stores something, prints, asserts or traps.

    Parameters
    ----------
    dump : str
        What -fdump-tree-forwprop1 writes.
    kernels : int
        How many there are.
    """
    bodies: dict[str, str] = {}
    for name, body in _FUNCTION.findall(dump):
        bodies[name] = bodies.get(name, "") + body
    stores = {name: _stores(body) for name, body in bodies.items()}
    reached = [_reached(f"rl_kernel_{number}", bodies) for number in range(kernels)]
    return [not names or any(map(stores.__getitem__, names)) for names in reached]


def _reached(kernel: str, bodies: dict[str, str]) -> set[str]:
    met: set[str] = set()
    waiting = {kernel} & bodies.keys()
    while waiting:
        met |= waiting
        waiting = {
            name for name in bodies
            if name not in met and not name.startswith("rl_") and any(f" {name} (" in bodies[one] for one in waiting)
        }  # fmt: skip
    return met


def _stores(body: str) -> bool:
    head, _, code = body.partition("  <bb ")
    own = set(_DECLARED.findall(head))
    if _CALLED.search(code):
        return True
    for line in code.splitlines():
        if (found := _STORE.match(line)) is None or _REGISTER.fullmatch(found[1]):
            continue
        variable = _VARIABLE.match(found[1])
        if variable is None or variable[1] not in own:
            return True
    return False
