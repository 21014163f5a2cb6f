"""Which GPU a call works on, by what it can reach: arguments, what a function closes over, modules, containers.

The search reads what lies in objects and runs as little of other people's code as it can: no property, no method but
DLPack's. An object that raises an error is skipped.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from .._core import Graph, Tensor

_MOST = 10_000  # objects that are looked at
_MOST_INSIDE = 1_000  # of one container
_LEAVES = (type, types.ModuleType, str, bytes, int, float, complex, type(None))  # modules reach every object
_CUDA = 2  # DLPack's number


def device_of(fn: object, args: Iterable[object] = (), kwargs: Mapping[str, object] | None = None) -> str:
    """The first GPU that holds an array within reach of `fn(*args, **kwargs)`, else "cpu".

    It looks at the arguments first, then at the function: its closure, defaults and the globals that it names, a bound
    method's object, what a `functools.partial` holds, attributes of objects, and lists, tuples, sets and dicts of all
    these. Graphs count as arrays, and so does everything that has DLPack or the CUDA array interface.

    Of a container it looks at the first 1,000 elements, and at 10,000 objects in all.

    Warns
    -----
    UserWarning
        When 10,000 objects did not suffice, and none of them was on a GPU.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(3)
    >>> device_of(lambda: x.exp())
    'cpu'
    """
    waiting: deque[object] = deque(islice((*args, *(kwargs or {}).values(), fn), _MOST))
    seen: dict[int, object] = {}  # held, so that no other object gets its id
    whole = True
    while waiting:
        value = waiting.popleft()
        if id(value) in seen or isinstance(value, _LEAVES):
            continue
        seen[id(value)] = value
        device = _device(value)
        if device and device != "cpu":
            return device
        if device is None:  # an array leads nowhere else
            found = _inside(value, min(_MOST_INSIDE, _MOST - len(seen) - len(waiting)))
            whole &= len(seen) + len(waiting) + len(found) < _MOST
            waiting += found
    if not whole:
        warnings.warn(
            f"[latency] none of the first {_MOST:,} objects that the call reaches is on a GPU, so the CPU's clock is "
            'used; write device="cuda" if it works on one',
            UserWarning,
            stacklevel=3,
        )
    return "cpu"


def _device(value: object) -> str | None:
    """The device of an array; None for anything else."""
    if isinstance(value, (Tensor, Graph)):  # not through an array interface: a tensor that requires grad has none
        return value.device if value.device.startswith("cuda") else "cpu"
    kind = type(value)
    if hasattr(kind, "__dlpack_device__"):
        try:
            place, index = value.__dlpack_device__()  # type: ignore[attr-defined]
        except Exception:  # whatever another library raises, such as for an array that was deleted
            return "cpu"
        return f"cuda:{int(index)}" if place == _CUDA else "cpu"
    if hasattr(kind, "__cuda_array_interface__"):  # which does not say which GPU
        return "cuda:0"
    return "cpu" if hasattr(kind, "__array_interface__") else None


def _inside(value: object, most: int) -> list[object]:
    """What a value holds or works with, `most` objects of it."""
    try:
        return [*islice((one for one in _within(value) if not isinstance(one, _LEAVES)), most)]
    except Exception:  # of another library's attribute, or a container that changes meanwhile
        return []


def _within(value: object) -> Iterator[object]:
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        yield from islice(value, _MOST_INSIDE)
    elif isinstance(value, dict):
        yield from islice(dict.values(value), _MOST_INSIDE)
    elif isinstance(value, functools.partial):
        yield from (*value.args, *value.keywords.values(), value.func)
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, types.BuiltinMethodType):
        yield value.__self__
    elif isinstance(value, types.FunctionType):
        yield from value.__defaults__ or ()
        yield from (value.__kwdefaults__ or {}).values()
        for cell in value.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue  # a name that is not bound yet
        yield from (value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__)
    else:
        if callable(value):
            yield type(value).__call__
        yield from islice(object.__getattribute__(value, "__dict__").values(), _MOST_INSIDE)


def _names(code: types.CodeType) -> Iterator[str]:
    """The globals that a function names, and the functions in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
