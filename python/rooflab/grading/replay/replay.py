"""Replays a trace of student code in the runtime, with rooflab's own functions and the judge's arguments.

`trace` describes its format. A trace comes from the process of the student's code, so nothing in it is trusted: it is
only a program in a very small language. A name stands for a function of `core_calls`, a handle for something that this
replay has made itself, and anything else raises `Refused`. So the counters see what the trace really does.
"""

from __future__ import annotations

import functools
import json
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

import rooflab as rl
from rooflab import _core
from rooflab.compiler.program import FunctionProgram
from rooflab.grading.measure.one_call import allocated
from rooflab.grading.measure.results import CROSSED
from rooflab.grading.replay import core_calls
from rooflab.grading.replay.scopes import MAX_DEPTH, Modes
from rooflab.grading.replay.trace import MAX_BYTES, MAX_EVENTS, Refused, leaves

MAX_TEXT = 2**27
TYPES = {"bool": bool, "int": int, "float": float}


class _Raised(Exception):
    """Stands for an exception of the student's in a function that the core calls."""


class _Callback:
    """Stands in for a student's function that the core calls; the trace says what that function did."""

    def __init__(self, replay: Replay, number: int, name: str) -> None:
        self.replay, self.number, self.__name__ = weakref.ref(replay), number, name

    def __call__(self, *args: Any) -> Any:
        replay = self.replay()
        if replay is None:
            raise Refused("a function was called after its trace had ended")
        return replay.call_back(self.number, args)

    def __del__(self) -> None:
        if (replay := self.replay()) is not None:
            replay.let_go()


class Replay:
    """One trace, to be run once for one measurement.

    Parameters
    ----------
    text, values
        The trace, as it came.

    Raises
    ------
    Refused
        By every method: the trace is not valid, or does something that it may not do.
    """

    def __init__(self, text: str, values: dict[int, Any]) -> None:
        if type(text) is not str or type(values) is not dict or len(text) > MAX_TEXT:
            raise Refused("what was recorded is not a trace")
        try:
            trace = json.loads(text)
            self.state, before, events = trace["state"], trace["before"], trace["events"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Refused("what was recorded is not a trace") from None
        if (
            type(before) is not list
            or type(events) is not list
            or not all(type(one) is list and one for one in before + events)
        ):
            raise Refused("what was recorded is not a trace")
        if len(before) + len(events) > 2 * MAX_EVENTS or sum(map(_size, values.values())) > 2 * MAX_BYTES:
            raise Refused("what was recorded is more than can be counted again")
        self.before, self.events, self.values, self.at = before, events, values, 0
        self.held: dict[int, Any] = {}
        self.kept: tuple = ()
        self.arguments: set[int] = set()
        self.layouts: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
        self.saved: list | None = None  # a list takes what a Function saved, which then stays alive
        self.passed = dict.fromkeys(CROSSED, 0)
        self.inside = 0
        self.modes = Modes()

    def prepare(self) -> None:
        """Make what existed before the call. This is not counted, but the memory that the call uses of it came from
        outside, whoever filled it.
        """
        events, self.events, before = self.events, self.before, allocated()
        self.modes.reset([0, 0, True, None])
        self._run(())
        self.events, self.at = events, 0
        used = _used(events)
        self.held = {handle: one for handle, one in self.held.items() if handle in used}
        self.kept = tuple(self.held.values())  # so that the call cannot make room by releasing it
        self.passed["uploaded_bytes"] = max(self.passed["uploaded_bytes"], allocated() - before)
        self.passed["meta_calls"] = 0  # compiling makes some

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for the measured function."""
        for number, one in enumerate(leaves((args, kwargs)), 1):
            self.held[-number] = one
            self.arguments.add(-number)
        self.modes.reset(self.state)
        event = self._run(("r",))
        return self._value(event[1])

    def close(self) -> None:
        """Leave the modes as they were before."""
        self.modes.close()

    def crossed(self) -> dict[str, int]:
        """Bytes that came from outside, arguments aside, bytes that went out, and calls that made tensors without
        memory, since the last call of this.
        """
        seen, self.passed = self.passed, dict.fromkeys(CROSSED, 0)
        return seen

    def call_back(self, number: int, args: tuple) -> Any:
        """Do what the student's function did that the core calls now, and return what it returned."""
        event = self._next()
        if event[:2] != ["[", number] or len(event) != 3 or self.inside > MAX_DEPTH:
            raise Refused("the trace does not say what a function did that the core calls")
        self._bind(event[2], args)
        if self.saved is not None and len(args) == 3:
            self.saved[:] = args[1]
        del args
        self.inside += 1
        event = self._run(("]",))
        self.inside -= 1
        if event[1] == ["!"]:
            raise _Raised
        return self._value(event[1])

    def let_go(self) -> None:
        """Drop what the next events release."""
        while self.at < len(self.events) and self.events[self.at][0] in ("x", "d"):
            self.at += 1  # first, because what is dropped may call this method again
            self._drop(self.events[self.at - 1])

    def _next(self) -> list:
        """The next event, once everything that is released before it has been dropped."""
        self.let_go()
        if self.at >= len(self.events):
            return [""]
        self.at += 1
        return self.events[self.at - 1]

    def _drop(self, event: list) -> None:
        if event[0] == "x":
            self.held.pop(event[1] if type(event[1]) is int else 0, None)

    def _run(self, ends: tuple[str, ...]) -> list:
        """Do what the events say, up to an event of one of these kinds; the end of the trace has the kind ""."""
        while True:
            event = self._next()
            kind = event[0]
            if kind in (ends or ("",)):
                if ends and len(event) != 2:
                    raise Refused("an event of the trace is malformed")
                return event
            try:
                match event:
                    case ["c", str(name), list(args), dict(kwargs), result]:
                        self._call(name, args, kwargs, result, None)
                    case ["(", str(name), list(args), dict(kwargs)] if name in core_calls.TREES:
                        self._call(name, args, kwargs, None, ")")
                    case ["b", int(base), str(device), str(dtype), int(elements), value]:
                        self._base(base, device, dtype, elements, value)
                    case ["u", int(handle), int(base), list(shape), list(strides), int(offset), bool(grad), of]:
                        self._upload(handle, base, shape, strides, offset, grad, of)
                    case ["w", int(handle), int(number)]:
                        self._write(handle, number)
                    case ["k", str(how)]:
                        self.modes.section(how, self.passed)
                    case _:
                        raise Refused("an event of the trace is malformed")
            except (Refused, MemoryError):
                raise
            except RecursionError:
                raise Refused("the trace is nested too deep") from None

    def _call(self, name: str, args: list, kwargs: dict, result: Any, end: str | None) -> None:
        function = self._function(name)
        if function is None:
            raise Refused(f"{name[:60]} is nothing that may be counted")
        try:
            made = self._made(name, function, args, kwargs)
        except Refused:
            raise
        except Exception as error:
            if end:
                result = self._run((end,))[1]
            if result != ["!"]:
                raise Refused(f"{name} failed when it was counted: {type(error).__name__}: {error}") from None
            return
        if end:
            result = self._run((end,))[1]
        if result == ["!"]:
            raise Refused(f"{name} did not fail when it was counted")
        self._bind(result, made)

    def _function(self, name: str) -> Callable | None:
        own: dict[str, Callable] = {
            "Program": self._program,
            "Program.__call__": self._run_program,
            "_autocast.begin": self.modes.begin,
            "_autocast.end": self.modes.end,
            "memory.Recorder.stop": lambda one: one.stop(),  # looked up when called, because `watch` replaces it
            "range.__enter__": self.modes.open,
            "range.__exit__": self.modes.leave,
        }
        return own.get(name) or _table().get(name)

    def _made(self, name: str, function: Callable, args: list, kwargs: dict) -> Any:
        given = [self._value(one) for one in args]
        named = {key: self._value(one) for key, one in kwargs.items()}
        path = name.rpartition(".")[0]
        kind = rl.Tensor if path == "Tensor" else core_calls.CLASSES.get(path)
        if kind and not (given and isinstance(given[0], kind)):  # the core would follow a null pointer for None
            raise Refused(f"{name} failed when it was counted: it is called on an object of another type")
        if name in core_calls.DOWNLOADS and given and isinstance(given[0], rl.Tensor):
            self.passed["downloaded_bytes"] += given[0].nbytes
        if name in ("tensor", "_rebuild"):
            several = [one for one in (*given, *named.values()) if isinstance(one, (list, tuple))]
            self.passed["uploaded_bytes"] += sum(8 * _count(one) for one in several)
        self.passed["uploaded_bytes"] += sum(_sent(self.values, one) for one in (*args, *kwargs.values()))
        made = function(*given, **named)
        self.passed["meta_calls"] += any(isinstance(x, rl.Tensor) and x.device.startswith("meta") for x in leaves(made))
        if name in core_calls.UNFILLED:
            _fill(made)
        return list(made) if name == "Tensor.__iter__" else made

    def _value(self, node: Any, depth: int = 0) -> Any:
        """The value of a structure."""
        if type(node) is not list:
            return node
        if depth > MAX_DEPTH:
            raise Refused("the trace is nested too deep")
        match node:
            case ["h", int(handle)]:
                if handle not in self.held:
                    raise Refused("the trace uses what it has not made, or what is gone")
                return self.held[handle]
            case ["l", *items]:
                return [self._value(one, depth + 1) for one in items]
            case ["t", *items]:
                return tuple([self._value(one, depth + 1) for one in items])
            case ["m", *items]:
                return dict(self._pair(one, depth) for one in items)
            case ["s", start, stop, step]:
                return slice(*(self._value(one, depth + 1) for one in (start, stop, step)))
            case ["e"]:
                return Ellipsis
            case ["D", str(name)]:
                return TYPES.get(name, name)
            case ["v", int(number)]:
                return self._sent(number)
            case ["f", int(number), str(name)]:
                return _Callback(self, number, name)
        raise Refused("a value of the trace is malformed")

    def _pair(self, node: Any, depth: int) -> tuple:
        if type(node) is not list or len(node) != 2:
            raise Refused("a value of the trace is malformed")
        key, value = (self._value(one, depth + 1) for one in node)
        try:
            hash(key)
        except TypeError:
            raise Refused("a value of the trace is malformed") from None
        return key, value

    def _sent(self, number: int) -> Any:
        if number not in self.values:
            raise Refused("the trace uses what it has not made, or what is gone")
        return self.values[number]

    def _bind(self, node: Any, made: Any) -> None:
        """Register the call's results under the trace's handles."""
        match node:
            case ["h", int(handle)]:
                if not isinstance(made, (*core_calls.HELD, np.ndarray)):
                    raise Refused("the trace names a result that does not exist")
                if self.held.setdefault(handle, made) is not made or handle < -len(self.arguments):
                    raise Refused("the trace gives a result a handle that is taken or not allowed")
            case ["l" | "t", *items]:
                if not isinstance(made, (list, tuple)) or len(made) != len(items):
                    raise Refused("the trace names a result that does not exist")
                for one, value in zip(items, made, strict=True):
                    self._bind(one, value)

    # what existed before the call

    def _base(self, base: int, device: str, dtype: str, elements: int, number: int | None) -> None:
        if number is None:
            made = _core.empty(elements, dtype=dtype, device=device)
            _fill(made)
        else:
            array = self._sent(number)
            if not isinstance(array, np.ndarray) or array.shape != (elements,) or array.dtype.name != dtype:
                raise Refused("the contents of a tensor do not fit it")
            made = _core.tensor(array, device=device)
            self.passed["uploaded_bytes"] += made.nbytes
        self._bind(["h", base], made)

    def _upload(self, handle: int, base: int, shape: list, strides: list, offset: int, grad: bool, of: Any) -> None:
        made = _core._strided(self._value(["h", base]), shape, strides, offset)
        if grad:
            made.requires_grad_()
        if of is not None:
            made.grad = self._value(["h", of])
        self._bind(["h", handle], made)

    def _write(self, handle: int, number: int) -> None:
        array, value = self._value(["h", handle]), self._sent(number)
        same = isinstance(array, np.ndarray) and isinstance(value, np.ndarray) and array.shape == value.shape
        if not same or array.dtype != value.dtype or handle in self.arguments:
            raise Refused("NumPy wrote where it cannot write")
        self.passed["uploaded_bytes"] += value.nbytes
        array[...] = value

    def _program(self, function: Callable, tensors: list, variant: str) -> FunctionProgram:
        made = FunctionProgram(function, (tuple(tensors), {}), tensors, variant)
        self.layouts[made] = _core._compiler.layouts(tensors)
        return made

    def _run_program(self, program: FunctionProgram, tensors: list) -> Any:
        if _core._compiler.layouts(tensors) != self.layouts[program]:
            raise Refused("a compiled function got tensors that it was not compiled for")
        return program(tensors)


@functools.cache
def _table() -> dict[str, Callable]:
    return core_calls.table()


def _fill(x: rl.Tensor) -> None:
    """Overwrite new memory, so that it shows no numbers of an earlier tensor. This is not counted. A GPU's memory stays
    as it is.
    """
    if x.device == "cpu":
        array = x.detach().numpy()
        array.fill(np.nan if x.dtype.is_floating_point else 1)


def _used(events: list[list]) -> set[int]:
    """The handles that events name."""
    found: set[int] = set()
    todo: list[Any] = [*events]
    while todo:
        match todo.pop():
            case ["h" | "w", int(handle), *_]:
                found.add(handle)
            case [*nodes]:
                todo += nodes
            case dict(named):
                todo += named.values()
    return found


def _size(value: Any) -> int:
    return int(getattr(value, "nbytes", 64))


def _count(value: Any) -> int:
    """How many numbers are in nested lists."""
    return sum(map(_count, value)) if isinstance(value, (list, tuple)) else 1


def _sent(values: dict[int, Any], node: Any) -> int:
    """Bytes of the arrays that a structure refers to by number."""
    if type(node) is not list:
        return 0
    if node[:1] == ["v"]:
        return sum(one.nbytes for one in [values.get(node[1])] if isinstance(one, np.ndarray))
    return sum(_sent(values, one) for one in node[1:])
