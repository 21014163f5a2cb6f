"""A trace: what student code asked of rooflab's core while it was measured, in order.

`recorder` makes it in the worker. `replay` runs it again in a process with no student code, and only what happens there
counts. It is sent as JSON text with a dict of the arrays and other plain values that the text refers to by number.
The text is {"state": [seed, offset, gradients on, low dtype], "before": events, "events": events}. `before` makes what
existed when the measurement began. Events, with structures of values in them:

    ["b", base, device, dtype, elements, value]          memory from before, its contents as an array or None
    ["u", handle, base, shape, strides, offset, requires_grad, grad]   a tensor in it; grad is a handle or None
    ["c", name, args, kwargs, result]                    a call
    ["(", name, args, kwargs]  [")", result]             a call with calls of Python functions inside it:
    ["[", callback, args]      ["]", result]             one of these
    ["x", handle]  ["d", callback]                       the last reference to it is gone
    ["w", handle, value]                                 NumPy wrote into an array that shares a tensor's memory
    ["k", "begin"]  ["k", "end"]                         what runs between is counted on its own; "drop": it is not
    ["r", result]                                        what the measured function returned

A structure is None, a bool, a number, text, or a list: ["h", handle] of a tensor, an array or an object of the core;
["l", ...] list, ["t", ...] tuple, ["m", [key, value], ...] dict, ["s", start, stop, step] slice, ["e"] Ellipsis,
["D", name] dtype, ["v", number] value, ["f", callback, name] function, ["o"] anything else in a result, ["!"] an
exception. Handles are numbers. The tensors and arrays among the arguments have -1, -2 ... in their order.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import rooflab as rl
from rooflab import _core
from rooflab.grading.jail import codec
from rooflab.grading.replay import core_calls

MAX_EVENTS, MAX_BYTES = 200_000, 2**28
PLAIN = (type(None), bool, int, float, str)
VALUES = (np.ndarray, np.generic, np.random.Generator, bytes, complex)  # that the codec carries as they are
KINDS = "tensors, arrays, numbers, text, or lists and dicts of them"


class Refused(Exception):
    """A trace that cannot be replayed. The message says why."""


class Function:
    """A student's function that the core calls: its number in the trace."""

    def __init__(self, function: Callable, number: int) -> None:
        self.function, self.number = function, number
        self.__name__ = getattr(function, "__name__", "function")


class Trace:
    """One trace while it is being made. Handles are drawn from `numbers`; `recipes` says how objects of the core were
    made. With `layouts`, it holds only the layouts of earlier tensors, no contents.
    """

    def __init__(self, numbers: Iterator[int], recipes: Mapping, layouts: bool = False) -> None:
        self.numbers, self.recipes, self.layouts = numbers, recipes, layouts
        self.before: list[list] = []
        self.events: list[list] = []
        self.values: dict[int, Any] = {}
        self.known: dict[int, tuple[int, Any]] = {}  # id of an object: its handle, and a weak reference to it
        self.bases: list[tuple] = []
        self.held: list[Any] = []
        self.shared: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # memory shared with NumPy, and what it held last
        self.pristine: dict[int, np.ndarray] = {}
        self.callbacks: dict[int, Any] = {}
        self.bytes, self.lost, self.handle = 0, "", 0
        self.at = ""  # begins a message about the values that come next
        low = _core._autocast.low_dtype()
        self.state = [*_core.get_rng_state(), _core.is_grad_enabled(), low and str(low)]

    def add(self, *event: Any) -> None:
        self.events.append(list(event))
        if len(self.events) > MAX_EVENTS:
            self.lose(
                f"the function made more than {MAX_EVENTS:,} calls of rooflab, which is too many. Work on whole "
                "tensors, not on single elements"
            )

    def forget(self, first: int) -> None:
        """Remove what was written from that event on, by a call that ran out of memory."""
        self.events[first:] = [event for event in self.events[first:] if event[0] in ("x", "d")]

    def lose(self, why: str) -> int:
        """Give up the trace and drop what it holds. Returns 0, in place of a handle."""
        self.lost = self.lost or why
        for held in (self.before, self.events, self.values):
            held.clear()  # type: ignore[attr-defined]
        return 0

    def parts(self) -> tuple[str, dict[int, Any]]:
        """The trace as it is sent."""
        text = json.dumps({"state": self.state, "before": self.before, "events": self.events}, separators=(",", ":"))
        return text, self.values

    # objects and their handles

    def begin(self, args: tuple, kwargs: dict) -> None:
        """Give the tensors and arrays among the arguments their handles."""
        for number, one in enumerate(leaves((args, kwargs)), 1):
            self.keep(one, -number)
            if isinstance(one, np.ndarray):
                self.pristine[-number] = one.copy()

    def keep(self, one: Any, handle: int) -> None:
        known, events, place = self.known, self.events, id(one)

        def ended(_: Any) -> None:
            known.pop(place, None)
            self.look(handle)
            self.shared.pop(handle, None)
            events.append(["x", handle])

        known[place] = handle, weakref.ref(one, ended)

    def result(self, value: Any) -> Any:
        """The structure of what a call returned; what is new in it gets a handle."""
        kind = type(value)
        if kind is rl.Tensor or kind in core_calls.HELD or kind is np.ndarray:
            known = self.known.get(id(value))
            if known is None:
                self.keep(value, handle := next(self.numbers))
                return ["h", handle]
            return ["h", known[0]]
        if kind in PLAIN:
            return value
        if kind is rl.device:
            return str(value)
        if isinstance(value, (list, tuple)):
            return ["l" if kind is list else "t", *map(self.result, value)]
        return ["o"]

    def bound(self, value: Any) -> Any:
        """The structure of what a callback was given."""
        args, kwargs = value
        if kwargs:
            self.lose("a function that rooflab calls was given arguments by name. Give them by position")
        return ["t", *map(self.result, args)]

    def given(self, value: Any) -> Any:
        """The structure of what student code gives: an argument, or a result."""
        kind = type(value)
        if kind in PLAIN:
            return value
        value = codec.plain(value)
        kind = type(value)
        if kind in PLAIN:
            return value
        known = self.known.get(id(value))
        if known is not None:
            handle = known[0]
            changed = handle in self.pristine and not _same(self.pristine[handle], value)
            return self.by_value(value) if changed else ["h", handle]
        if kind is rl.Tensor:
            return ["h", self.upload(value)]
        if isinstance(value, (list, tuple)):
            return ["l" if kind is list else "t", *map(self.given, value)]
        if isinstance(value, dict):
            return ["m", *([self.given(key), self.given(one)] for key, one in value.items())]
        if kind is slice:
            return ["s", self.given(value.start), self.given(value.stop), self.given(value.step)]
        if value is Ellipsis:
            return ["e"]
        if kind is rl.DType:
            return ["D", str(value)]
        if kind in core_calls.HELD:
            return ["h", self.rebuilt(value)]
        if isinstance(value, Function):
            return ["f", value.number, value.__name__]
        return self.by_value(value)

    def by_value(self, value: Any) -> list:
        """A value that the codec carries, as it is now."""
        if isinstance(value, range):
            return self.given(list(value))
        if isinstance(value, (type, np.dtype)):
            plain = value.__name__ if isinstance(value, type) and value in (bool, int, float) else ""
            return ["D", plain or np.dtype(value).name]
        if not isinstance(value, VALUES):
            value, kind = _array_of(value), type.__getattribute__(type(value), "__name__")
            if value is None:
                return ["v", self.lose(f"{self.at} a value of type {kind}. Use {KINDS}")]
        number = next(self.numbers)
        self.values[number] = value.copy() if isinstance(value, np.ndarray) else value
        self.spend(getattr(value, "nbytes", 64))
        return ["v", number]

    def spend(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_BYTES:
            self.lose(
                f"more than {MAX_BYTES >> 20} MiB were copied into tensors from Python or NumPy, or were in tensors "
                "from before the call, which is too much. Compute with tensors"
            )

    def upload(self, x: Any) -> int:
        """Add a tensor from before the call: its memory, which other such tensors may share, and its layout."""
        if x.grad_fn is not None and not self.layouts:
            return self.lose(
                "the function used a tensor from before the call that still has a graph, and the computation in that "
                "graph is not part of the call. Make the tensor inside of the function, or use x.detach()"
            )
        shape, strides, size = x.shape, x.strides, x.itemsize
        elements = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if x.numel() else 0
        first = x.data_ptr()
        for known, begin, end, device, dtype in self.bases:
            if device == x.device and dtype == x.dtype and begin <= first and first + elements * size <= end:
                base, start = known, begin
                break
        else:
            base, start = next(self.numbers), first
            self.bases.append((base, start, first + elements * size, x.device, x.dtype))
            self.held.append(x.detach())  # so that its memory is not reused meanwhile
            value = None
            if not self.layouts and elements and not x.device.startswith("meta"):
                value = self.by_value(_core._strided(x, (elements,), (1,), 0).cpu().numpy())[1]
            self.before.append(["b", base, x.device, str(x.dtype), elements, value])
        grad = None if self.layouts else x.grad
        held = None if grad is None else self.upload(grad.detach())
        handle = next(self.numbers)
        self.before.append(["u", handle, base, shape, strides, (first - start) // size, x.requires_grad, held])
        self.keep(x, handle)
        return handle

    def rebuilt(self, value: Any) -> int:
        """Add an object of the core from before the call, by the call that made it."""
        recipe = self.recipes.get(value)
        if isinstance(recipe, Trace) and not recipe.lost:
            self.before += [*recipe.before, *recipe.events]
            self.values |= recipe.values
            self.keep(value, handle := recipe.handle)
        elif isinstance(recipe, tuple):
            name, args, kwargs = recipe
            handle = next(self.numbers)
            given = [self.given(one) for one in args], {key: self.given(one) for key, one in kwargs.items()}
            self.before.append(["c", name, *given, ["h", handle]])
            self.keep(value, handle)
        else:
            kind = type(value).__name__
            return self.lose(f"the function used a {kind} from before the call. Make it inside of the function")
        return handle

    def share(self, x: Any, array: Any) -> None:
        """Watch an array that NumPy got, if it shares the memory of the tensor."""
        own = x.numpy() if x.device == "cpu" else None
        if own is not None and type(array) is np.ndarray and np.may_share_memory(own, array):
            self.shared[self.known[id(array)][0]] = own, own.copy()

    def look(self, only: int | None = None) -> None:
        """Write down what NumPy changed in memory that it shares with tensors."""
        for handle in [*self.shared] if only is None else [only] * (only in self.shared):
            own, held = self.shared[handle]
            if not _same(own, held):
                self.add("w", handle, self.by_value(own)[1])
                self.shared[handle] = own, own.copy()

    def look_again(self) -> None:
        """Remember what the core itself wrote there, so that it is not taken for a change by NumPy."""
        for handle, (own, held) in self.shared.items():
            if not _same(own, held):
                self.shared[handle] = own, own.copy()


def _array_of(value: Any) -> np.ndarray | None:
    """What an object gives as an array; None if it gives none, as those on a GPU do."""
    try:
        return np.asarray(value) if hasattr(value, "__array__") else None
    except Exception:
        return None


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def leaves(value: Any) -> Iterator[Any]:
    """The tensors and arrays in nested lists, tuples and dicts, in order."""
    if isinstance(value, (rl.Tensor, np.ndarray)):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
