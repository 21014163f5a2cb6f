"""In the worker: wrappers that write down what student code asks of rooflab's core while it is measured.

`install` puts a wrapper around each function in `core_calls`, before student code runs. A wrapper only forwards until a
measurement runs. Then each call that student code makes becomes an event of a `trace`; what the core calls in turn is
part of that call.
"""

from __future__ import annotations

import array
import contextlib
import functools
import gc
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import get_ident
from types import FunctionType
from typing import Any

import numpy as np

import rooflab as rl
from rooflab import _core
from rooflab.compiler.arguments import replace
from rooflab.compiler.modules import replaced
from rooflab.compiler.program import FunctionProgram
from rooflab.compiler.undo import unchanged
from rooflab.grading.replay import core_calls
from rooflab.grading.replay.trace import PLAIN, Function, Trace

REMADE = ("_gemma3.Attention", "_gemma3.Layer", "_gemma3.Mlp", "range")  # made again from the arguments they were given
# Reading these changes nothing.
READ = (*PLAIN, bytes, list, tuple, range, Mapping, np.ndarray, np.generic, *core_calls.HELD)
BUFFERS = (memoryview, bytearray, array.array)


class Recorder:
    """The recorder of this process. It is `on` while student code runs and is measured, but not while the core runs."""

    def __init__(self) -> None:
        self.on = False
        self.trace: Trace | None = None
        self.numbers = itertools.count(1)
        self.recipes: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # how objects of the core were made
        self.thread = get_ident()

    def measured(self, fn: Callable, returns: bool = True) -> Callable:
        """The function, made to write down a call of it and, if `returns`, what it returns."""

        def call(*args: Any, **kwargs: Any) -> Any:
            trace = self.trace
            assert trace is not None
            trace.begin(args, kwargs)
            self.on = True
            try:
                value = fn(*args, **kwargs)
            finally:
                self.on = False
            trace.look()
            trace.at = "the function returned"
            trace.add("r", trace.given(value) if returns else None)
            return value

        return call

    def record(self, measure: Callable[[], Any], layouts: bool = False) -> tuple[Trace, Any]:
        """The trace of a measurement, in which a function from `measured` is called, and what `measure` returned."""
        self.trace = trace = Trace(self.numbers, self.recipes, layouts)
        try:
            seen = measure()
        finally:
            self.on, self.trace = False, None
        return trace, seen

    @contextlib.contextmanager
    def section(self) -> Iterator[None]:
        """What runs inside is counted on its own, if it ends without an exception."""
        trace = self.trace
        if trace is None:
            yield
            return
        trace.add("k", "begin")
        try:
            yield
        except BaseException:
            trace.add("k", "drop")
            raise
        trace.add("k", "end")

    def call(self, name: str, original: Callable, args: tuple, kwargs: dict) -> Any:
        """Make a call for student code, and write it down."""
        trace = self.trace
        assert trace is not None
        args, kwargs = tuple(map(_whole, args)), {key: _whole(one) for key, one in kwargs.items()}
        self.on = False
        try:
            if trace.lost:
                return original(*args, **kwargs)
            if why := core_calls.REFUSED.get(name):
                trace.lose(why)
                return original(*args, **kwargs)
            trace.at = f"{core_calls.shown(name)} was given"
            if trace.shared:
                trace.look()
            if name in core_calls.TREES:
                return self.tree(trace, name, original, args, kwargs)
            if name == "_autograd.record_function" and len(args) == 5:
                args = (*args[:4], self.callback(args[4]))
            given = [trace.given(one) for one in _arguments(name, args)]
            event = ["c", name, given, {key: trace.given(one) for key, one in kwargs.items()}, None]
            try:
                value = original(*args, **kwargs)
            except _core.OutOfMemoryError:  # a call that ran out of memory has done nothing
                raise
            except BaseException:
                event[4] = ["!"]
                trace.add(*event)
                raise
            if value is NotImplemented:
                return value
            if name == "Tensor.__iter__":
                event[4] = ["l", *map(trace.result, rows := list(value))]
                value = iter(rows)
            else:
                event[4] = trace.result(value)
            trace.add(*event)
            if trace.shared:
                trace.look_again()
            if name in ("Tensor.numpy", "Tensor.__array__"):
                trace.share(args[0], value)
            return value
        finally:
            self.on = True

    def is_elsewhere(self, name: str) -> bool:
        """Whether this is another thread than that of the measurement, whose trace is then lost."""
        if self.trace is None or get_ident() == self.thread:
            return False
        self.trace.lose(
            f"the function called {core_calls.shown(name)} in a thread of its own, and the order of calls in several "
            "threads is not known. Make all calls in the function itself"
        )
        return True

    def tree(self, trace: Trace, name: str, original: Callable, args: tuple, kwargs: dict) -> Any:
        args = tuple(self.callback(one) if isinstance(one, FunctionType) else one for one in args)
        first = len(trace.events)
        trace.add("(", name, [trace.given(one) for one in args], {k: trace.given(v) for k, v in kwargs.items()})
        try:
            value = original(*args, **kwargs)
        except _core.OutOfMemoryError:
            trace.forget(first)
            raise
        except BaseException:
            trace.add(")", ["!"])
            raise
        trace.add(")", trace.result(value))
        return value

    def callback(self, function: Callable) -> Callback:
        made, trace = Callback(self, function), self.trace
        number = made.number
        assert trace is not None

        def ended(_: Any) -> None:
            trace.callbacks.pop(number, None)
            trace.events.append(["d", number])

        trace.callbacks[number] = weakref.ref(made, ended)
        return made


class Callback(Function):
    """Wraps a student's function for the core, so that its calls become part of the trace."""

    def __init__(self, recorder: Recorder, function: Callable) -> None:
        super().__init__(function, next(recorder.numbers))
        self.recorder = recorder

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = self.recorder
        trace = recorder.trace
        if trace is None or recorder.on:
            return self.function(*args, **kwargs)
        trace.add("[", self.number, trace.bound((args, kwargs)))
        recorder.on, result = True, ["!"]
        try:
            returned = self.function(*args, **kwargs)
            recorder.on = False
            trace.at = f"{self.__name__} returned"
            result = trace.given(returned)
            return returned
        finally:
            recorder.on = False
            trace.add("]", result)


def _arguments(name: str, args: tuple) -> tuple:
    if name.endswith("__exit__"):  # asks only whether there is an error
        return (args[0], *(None if one is None else True for one in args[1:2]), None, None)
    return args


def _whole(value: Any) -> Any:
    """An iterator as a list and a buffer as an array, since the trace and the core both read them."""
    if isinstance(value, BUFFERS):
        return np.asarray(value)
    once = isinstance(value, Iterable) and not isinstance(value, READ) and not hasattr(value, "__array__")
    return list(value) if once else value


@functools.cache
def holders() -> tuple[dict, ...]:
    """The dictionaries in which modules hold functions of the core. Workers are forked after they were found."""
    table = core_calls.table()
    functions = [table[name] for name in core_calls.FUNCTIONS] + [
        core_calls.held_by(name) for name in core_calls.REFUSED
    ]
    del table
    return tuple(one for one in gc.get_referrers(*functions) if isinstance(one, dict) and "__qualname__" not in one)


def install() -> Recorder:
    """Wrap what student code may call of the core, wherever rooflab's modules hold it already."""
    recorder, held = Recorder(), holders()  # what is made here may not be among them
    originals = core_calls.table() | {name: core_calls.held_by(name) for name in core_calls.REFUSED}
    functions = {id(originals[name]): name for name in (*core_calls.FUNCTIONS, *core_calls.REFUSED)}
    wrapped = {name: _wrapped(recorder, name, original) for name, original in originals.items()}
    for holder in held:
        for key, value in list(holder.items()):
            if id(value) in functions:
                holder[key] = wrapped[functions[id(value)]]
    for name in (*core_calls.METHODS, *core_calls.OTHERS, *core_calls.REFUSED):
        owner, last = core_calls.owner_of(name)
        setattr(owner, last, wrapped[name])
    for name in {*core_calls.GETTERS, *core_calls.SETTERS}:
        before, full = vars(rl.Tensor)[name], f"Tensor.{name}"
        made = property(wrapped.get(full, before.fget), wrapped.get(f"{full}=", before.fset), doc=before.__doc__)
        setattr(rl.Tensor, name, made)
    for name in core_calls.MADE:
        kind = core_calls.CLASSES[name]
        kind.__init__ = _init(recorder, name, kind.__init__)  # type: ignore[misc]
    FunctionProgram.__init__ = _program_init(recorder, FunctionProgram.__init__)  # type: ignore[method-assign]
    return recorder


def _wrapped(recorder: Recorder, name: str, original: Any) -> Any:
    if isinstance(original, property):
        return property(_wrapped(recorder, name, original.fget), doc=original.__doc__)
    call = recorder.call

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if recorder.trace is not None and not recorder.is_elsewhere(name) and recorder.on:
            return call(name, original, args, kwargs)
        return original(*args, **kwargs)

    wrapper.__module__, wrapper.__qualname__ = _core.__name__, name  # where pickle finds it
    return wrapper


def _init(recorder: Recorder, name: str, original: Callable) -> Callable:
    """Wraps the `__init__` of a class of the core."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not recorder.on:
            original(self, *args, **kwargs)
            if name in REMADE:
                recorder.recipes[self] = name, args, kwargs
            return

        def made(*args: Any, **kwargs: Any) -> Any:
            original(self, *args, **kwargs)
            return self

        recorder.call(name, made, args, kwargs)

    return init


def _program_init(recorder: Recorder, original: Callable) -> Callable:
    """Wraps the `__init__` of a compiled function, which compiles it by calling it once."""

    @functools.wraps(original)
    def init(
        self: Any,
        function: Callable,
        arguments: tuple,
        tensors: list,
        variant: str,
        places: dict | None = None,
        state: Iterable[Any] = (),
    ) -> None:
        outer, was_on = recorder.trace, recorder.on
        # Compiling counts nothing, so a trace that uses it begins with it.
        trace = Trace(recorder.numbers, recorder.recipes, layouts=True)
        recorder.trace, recorder.on = trace, False

        def flat(*twins: Any) -> Any:
            given = iter(twins)
            args, kwargs = replace(arguments, lambda _: next(given))
            with replaced(places or {}, list(given)), unchanged(state):  # the others are those of modules
                return function(*args, **kwargs)

        def compiled(callback: Callable, tensors: list, variant: str) -> Any:
            # Only the student's function is watched: the others are made for this recording, and end with it.
            original(self, callback, (tuple(tensors), {}), tensors, variant, reads=(function, arguments))
            return self

        compiled_flat = functools.wraps(function, updated=())(flat)
        try:
            recorder.tree(trace, "Program", compiled, (compiled_flat, list(tensors), variant), {})
        finally:
            recorder.trace, recorder.on = outer, was_on
        trace.handle = trace.known[id(self)][0] if not trace.lost else 0
        recorder.recipes[self] = trace

    return init
