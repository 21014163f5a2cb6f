"""`rl.compile`: functions as programs of few launches."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, overload

from .. import _core
from .._calls import runs_later
from .._core import Tensor
from .._decorated import F
from .._in_words import in_words
from ..nn.module import Module
from .arguments import flatten, outline
from .modules import tensors_of_modules
from .program import FunctionProgram
from .turns import TURNS, Busy, InVain
from .undo import Assigned

__all__ = ["compile"]

_PROGRAMS = 64  # keys whose programs a function keeps
_VALUES = 8  # programs of one key, for different values of what the function reads

_ASSIGNED = 2  # how often a function may assign attributes of modules before it runs as it is written for good
_OWN = {"_function", "_variant", "_programs", "_alike", "_warned", "_assigned", "_waits"}


class _Call:
    """What programs of a call go by.

    Attributes
    ----------
    arguments : (tuple, dict)
    tensors : list of Tensor
        Those among the arguments, then those of modules.
    places, state : dict
        Where modules hold the latter, and what else they hold: see `tensors_of_modules`.
    key : tuple
        Calls of one key have the same programs.
    """

    def __init__(self, function: Callable, args: tuple, kwargs: dict):
        self.arguments = (args, kwargs)
        self.tensors: list[Tensor] = []
        plain = flatten(self.arguments, self.tensors)
        self.state: dict[int, Any] = {}
        self.places = tensors_of_modules(function, self.arguments, self.state)
        self.tensors += self.places
        where = tuple([(id(holder), name) for each in self.places.values() for holder, name in each])
        first: dict[int, int] = {}
        same = tuple([first.setdefault(id(x), i) for i, x in enumerate(self.tensors)])
        layouts, inner = _core._compiler.layouts(self.tensors), _core._compiler.results_among(self.tensors)
        self.key: tuple | None = (plain, where, same, layouts, inner, _core._compiler.settings())

    def outline(self) -> tuple:
        """The key without telling objects and modules apart."""
        assert self.key is not None
        plain, where, *others = self.key
        return (outline(plain), tuple([name for _, name in where]), *others)


class _Compiled:
    """A function that runs as the programs that were recorded of it; see `compile`."""

    def __init__(self, function: Callable, variant: str):
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._variant = variant
        self._programs: OrderedDict[Any, list[FunctionProgram]] = OrderedDict()  # no program: runs as it is written
        self._alike: OrderedDict[Any, list] = OrderedDict()  # keys that differ in objects alone
        self._warned: set[str] = set()
        self._assigned = 0
        self._waits = False  # for threads that wait for it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core._compiler.is_tracing():  # the function that calls this one is traced, and fuses across both
            return self._function(*args, **kwargs)
        call = None
        try:
            call = self._look(args, kwargs)
            program = self._program(call)
        except Busy:
            program = None
        except Exception as reason:
            return self._fall_back(reason, call, args, kwargs)
        return program(call.tensors) if call and program else self._as_written(call, args, kwargs)

    def _look(self, args: tuple, kwargs: dict) -> _Call:
        changes = TURNS.changes
        call = _Call(self._function, args, kwargs)
        if call.places and (changes % 2 or changes != TURNS.changes):  # they may be those of a recording
            with TURNS.using(call.places):
                call = _Call(self._function, args, kwargs)
        return call

    def _program(self, call: _Call) -> FunctionProgram | None:
        """The program of a call, recorded now if there is none; None: the function runs as it is written."""
        programs = self._programs.get(call.key)
        if programs is not None:
            with contextlib.suppress(KeyError):  # another thread has removed it
                self._programs.move_to_end(call.key)
        if programs == [] or self._waits:
            return None
        changed = None
        for program in programs or ():
            changed = program.guards.change()
            if changed is None:
                return program
        if programs and len(programs) >= _VALUES:
            raise ValueError(f"[compile] it reads {changed!r}, which had {_VALUES} values already; pass it as a tensor")
        if programs is None:
            self._count_objects(call)
        with TURNS.recording(call.places) if call.places else contextlib.nullcontext():
            program = FunctionProgram(
                self._function, call.arguments, call.tensors, self._variant, call.places, list(call.state.values())
            )
        self._remember(call.key, [program, *(programs or ())])
        return program

    def _count_objects(self, call: _Call) -> None:
        """ValueError when the function gets other objects, or modules, whenever it is called."""
        keys = self._alike.setdefault(call.outline(), [])
        if len(self._alike) > _PROGRAMS:
            self._alike.popitem(last=False)
        if len(keys) >= _PROGRAMS:
            for key in keys:
                self._programs.pop(key, None)
            keys[:] = [None] * len(keys)  # they may hold the objects
            call.key = None
            raise ValueError(
                f"[compile] {_PROGRAMS} calls differed in nothing but which objects or modules they use, and each was "
                "recorded; make these once"
            )
        keys.append(call.key)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._function, name)
        if not isinstance(self._function, Module) or getattr(value, "__self__", None) is not self._function:
            return value

        @functools.wraps(value)  # what returns the module itself, such as `eval`, returns the compiled one
        def method(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            return self if result is self._function else result

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        """Attributes of a module that is compiled are its own, as reading them shows."""
        if name in _OWN or name.startswith("__") or not isinstance(self._function, Module):
            object.__setattr__(self, name, value)
        else:
            setattr(self._function, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            object.__delattr__(self, name)
        else:
            delattr(self._function, name)

    def __reduce__(self) -> tuple:
        """A copy, or what is unpickled, records again."""
        return _Compiled, (self._function, self._variant)

    def __repr__(self) -> str:
        return f"compile({self._function!r})"

    def _remember(self, key: Any, programs: list[FunctionProgram]) -> None:
        self._programs[key] = programs
        if len(self._programs) > _PROGRAMS:
            self._programs.popitem(last=False)

    def _as_written(self, call: _Call | None, args: tuple, kwargs: dict) -> Any:
        with TURNS.using(call.places if call else {}) if call is None or call.places else contextlib.nullcontext():
            return self._function(*args, **kwargs)

    def _fall_back(self, reason: Exception, call: _Call | None, args: tuple, kwargs: dict) -> Any:
        """Run the function as it is written. An error that it raises by itself needs no warning."""
        if isinstance(reason, InVain):
            if call is None:  # its modules hold the tensors of another thread's recording
                raise reason
            self._waits = True
        result = self._as_written(call, args, kwargs)
        if isinstance(reason, Assigned) and self._assigned < _ASSIGNED:
            self._assigned += 1  # perhaps only once
            return result
        if call is not None and call.key is not None:
            self._remember(call.key, [])
        text = str(reason)
        if text not in self._warned:
            self._warned.add(text)
            name = getattr(self._function, "__name__", type(self._function).__name__)
            if "meta:" in text:
                text += (
                    " (arguments have no memory while they are recorded; a tensor from elsewhere must be passed too)"
                )
            warnings.warn(f"[compile] {name} runs as it is written, op by op: {text}", UserWarning, stacklevel=3)
        return result


@overload
def compile(function: None = None, *, variant: str = "") -> Callable[[F], F]: ...
@overload
def compile(function: F, *, variant: str = "") -> F: ...
@in_words
def compile(function: Any = None, *, variant: str = "") -> Any:
    """Make a function run in fewer launches, with the same results.

    When it is first called with arguments of a new key, the function runs once on tensors without memory, and the ops
    that it calls are recorded. Chains of elementwise ops (arithmetic, functions, comparisons, `where`, casts, `gelu`)
    then run as one op, `fused`: on a GPU a kernel that is generated and compiled for the chain, on the CPU blocks that
    stay in the cache from the first instruction to the last. Everything else, such as a matmul, runs as it was
    recorded. The key is shape, strides, dtype, device and `requires_grad` of each tensor, whether it is a leaf, which
    tensors are the same one, and each other argument: numbers, texts and frozen dataclasses of them by type and value,
    other objects by identity, so that one that is made for each call is recorded each time. Grad mode, autocast, the
    precision of products, the CPU's instruction set and the number of its threads belong to the key too. No object is
    kept alive for the comparison if its type has weak references, as most have.

    A sum, mean, amax or amin over the last dimensions runs in the launch of the chain that makes its operand, if there
    are at least 256 rows of 128 to 65536 elements. So do elementwise ops on the rows' results, and on the elements of a
    row together with its result: a softmax or a norm that is written out is one launch. It reads a row once if
    registers or a cache hold it. A chain has up to four reductions; what exceeds that is another launch.

    Up to two sums over all dimensions before a row's, such as the gradients of a norm's weight and bias, run in the
    launch of the rows, if these are at least 512 and short enough to stay in registers. On a GPU one launch more then
    adds what each block left. A GPU adds the numbers of a chain in float: where these partial sums overflow, the result
    is infinite or NaN. `rl.sum` alone adds them once more without overflow.

    What the function reads besides its arguments is compared at each call, and where it changed the function is
    recorded again: globals, closure variables, defaults, attributes of objects, classes and Python modules, and what
    lists, dicts, sets, arrays of numbers and context variables hold; in the function itself, in all Python functions
    that it calls, and in the backward of an `rl.autograd.Function`. That a name is absent counts too, and so do the
    classes of objects. Numbers, strings, None and tuples of them are compared by value, functions and other objects by
    identity. Of a tensor that is no argument, but has a name of its own or lies in a list, what the key has of an
    argument is compared, and whether it has a `grad`; but not whether it is the same object as another tensor.

    Not seen is what code in C keeps to itself, nor what the function reads in other threads, nor what is found in a
    Python module by a name that is computed: what an object there holds, and that the name is absent. Clocks, files and
    iterators are read once, while the function is recorded: pass what they give as an argument.

    When an argument requires grad, backward is recorded too and runs in few launches as well. It recomputes a value
    inside a chain if the value's inputs are kept anyway, so that the value need not be kept. Every tensor is freed at
    its last use, and each gradient goes to its leaf as soon as it is made. `rl.compile` also works as a decorator, with
    and without `variant`.

    Where only some of several results go backward, only what lies behind these is run, and what they do not depend on
    gets no gradient. Where these are more than one, a program runs for each of them, and what they share runs in each:
    this takes more launches and FLOPs than op by op. Their gradients are added last, so a sum of two infinite ones may
    be NaN where op by op it is not. The results of one call are one node of the graph: to go backward from one and
    later from another, pass ``retain_graph=True`` to the first, also where the two have nothing in common.

    The tensors of a module are arguments too: of a module that is compiled (``rl.compile(model)``), and of one that the
    function gets as an argument, closes over, names as a global, or finds in the object whose method it is. The next
    call sees what was written to them, and their gradients add up as usual. A compiled module has the attributes and
    methods of the module, but is no child of another one, which refuses it: compile the outer one, or the forward of
    the inner one (``inner.forward = rl.compile(inner.forward)``). While a function is recorded, no other
    thread may use its modules but in compiled functions, which wait.

    Parameters
    ----------
    function : callable
        Takes tensors, nested tuples, lists and dicts of them, modules and other hashable arguments, and returns
        tensors, nested or not, and plain values. It must do the same ops whenever it is called with the same key.
        Anything else that it does, such as printing, happens only when it is recorded, and if that fails it happens
        twice at the first call. Ranges that it opens are not seen. A tensor that it makes and a cache in C keeps, as
        ``functools.lru_cache`` does, has no values: fill such caches before.
    variant : str
        The rung of `fused` that runs the chains: one of ``rl.variants("fused")``. The fastest when empty.

    Returns
    -------
    callable
        Called like the function. It counts one launch for each chain, and the bytes of each operand and each result
        once, on meta tensors too. Inside a chain, float16 and bfloat16 values are kept as float32: results differ from
        those of separate ops within the dtype's tolerance, and are nearer to the exact ones.

    Raises
    ------
    ValueError
        For a variant that `fused` lacks.
    TypeError
        For anything but a function, and for generator and async functions.
    RuntimeError
        When a compiled function is called and, after 30 seconds, another thread still records a function on the same
        modules. The latter, which may wait for the former, then runs as it is written, also from then on.

    Warns
    -----
    UserWarning
        Once for each reason, when the function cannot be recorded; it then runs as it is written. This happens when it
        reads a value of any tensor (``.item()``, ``if x > 0``), draws random numbers or asks for the generator's state,
        writes into an argument or into a part of a tensor, also by an array (``x[index] = y``), uses a tensor that is
        neither an argument nor a module's, or calls `backward` (``rl.autograd.grad`` can be compiled). Also when it
        changes a setting of rooflab, leaves grad mode or autocast changed, asks how much memory is held or waits for a
        GPU. Also when it reads a `grad` or sets one, changes a
        `requires_grad`, keeps a tensor that it makes in what outlives the call, changes a list or dict that it got as
        an argument, or assigns attributes of a module at three calls. Also when one value that it reads was seen with
        8 values, when there are more than 100000, and when 64 calls differ in which objects they use and nothing else.

    Examples
    --------
    >>> import rooflab as rl
    >>> @rl.compile
    ... def gelu(x):
    ...     return 0.5 * x * (1 + rl.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    >>> x = rl.randn(256, 256)
    >>> with rl.count() as c:
    ...     y = gelu(x)
    >>> c.launches, c.bytes_read + c.bytes_written == 2 * x.nbytes
    (1, True)
    """
    if function is None:
        return functools.partial(compile, variant=variant)
    if not callable(function) or runs_later(function):
        raise TypeError(f"[compile] expected a function, and no generator or async function, got {function!r}")
    rungs = [rung.name for rung in _core.variants("fused")]
    if variant and variant not in rungs:
        raise ValueError(f"[compile] variant: expected one of {', '.join(dict.fromkeys(rungs))}; got {variant!r}")
    return _Compiled(function, variant)
