"""`rl.compile`: functions as programs of few launches."""

from __future__ import annotations

import functools
import threading
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
from .arguments import flatten
from .modules import tensors_of_modules
from .program import FunctionProgram

__all__ = ["compile"]

_PROGRAMS = 64  # keys whose programs a function keeps
_VALUES = 8  # programs of one key, for different values of what the function reads

_OWN = {"_function", "_variant", "_programs", "_warned"}

# Held while a function is recorded, and its modules have other tensors. Functions that are called meanwhile wait.
_RECORDING = threading.RLock()


class _Compiled:
    """A function that runs as the programs that were recorded of it; see `compile`."""

    def __init__(self, function: Callable, variant: str):
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._variant = variant
        self._programs: OrderedDict[Any, list[FunctionProgram]] = OrderedDict()  # no program: runs as it is written
        self._warned: set[str] = set()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _core._compiler.is_tracing():  # the function that calls this one is traced, and fuses across both
            return self._function(*args, **kwargs)
        key = None
        try:
            with _RECORDING:
                tensors, key, places, state = self._look(args, kwargs)
                program = self._program(args, kwargs, tensors, key, places, state)
        except Exception as reason:
            return self._fall_back(reason, key, args, kwargs)
        return program(tensors) if program else self._function(*args, **kwargs)

    def _look(self, args: tuple, kwargs: dict) -> tuple:
        """The tensors of a call, the key of its programs, where modules hold the last ones, and their other state."""
        tensors: list[Tensor] = []
        modes = (_core.is_grad_enabled(), str(_core._autocast.low_dtype()))
        plain = flatten((args, kwargs), tensors)
        state: dict[int, Any] = {}
        places = tensors_of_modules(self._function, (args, kwargs), state)
        where = tuple([(id(holder), name) for each in places.values() for holder, name in each])
        tensors += places
        objects = [id(x) for x in tensors]
        same = None if len(set(objects)) == len(objects) else tuple(map(objects.index, objects))
        layouts, inner = _core._compiler.layouts(tensors), _core._compiler.results_among(tensors)
        return tensors, (plain, where, same, layouts, inner, modes), places, state

    def _program(
        self, args: tuple, kwargs: dict, tensors: list[Tensor], key: Any, places: dict, state: dict
    ) -> FunctionProgram | None:
        """The program of a call, recorded now if there is none; None: the function runs as it is written."""
        programs = self._programs.get(key)
        if programs is not None:
            self._programs.move_to_end(key)
        if programs == []:
            return None
        changed = None
        for program in programs or ():
            changed = program.guards.change()
            if changed is None:
                return program
        if programs and len(programs) >= _VALUES:
            raise ValueError(f"[compile] it reads {changed!r}, which had {_VALUES} values already; pass it as a tensor")
        program = FunctionProgram(self._function, (args, kwargs), tensors, self._variant, places, list(state.values()))
        self._remember(key, [program, *(programs or ())])
        return program

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Attributes of a module that is compiled are its own, as reading them shows."""
        is_own = name in _OWN or name.startswith("__") or not isinstance(self._function, Module)
        object.__setattr__(self if is_own else self._function, name, value)

    def __reduce__(self) -> tuple:
        """A copy, or what is unpickled, records again."""
        return _Compiled, (self._function, self._variant)

    def __repr__(self) -> str:
        return f"compile({self._function!r})"

    def _remember(self, key: Any, programs: list[FunctionProgram]) -> None:
        with _RECORDING:
            self._programs[key] = programs
            if len(self._programs) > _PROGRAMS:
                self._programs.popitem(last=False)

    def _fall_back(self, reason: Exception, key: Any, args: tuple, kwargs: dict) -> Any:
        """Run the function as it is written. An error that it raises by itself needs no warning."""
        result = self._function(*args, **kwargs)
        if key is not None:
            self._remember(key, [])
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
    tensors are the same one, and each other argument: numbers and texts by type and value, other objects by identity.

    A sum, mean, amax or amin over the last dimensions runs in the launch of the chain that makes its operand, if there
    are at least 256 rows of 128 to 65536 elements. So do elementwise ops on the rows' results, and on the elements of a
    row together with its result: a softmax or a norm that is written out is one launch. It reads a row once if
    registers or a cache hold it. A chain has up to four reductions; what exceeds that is another launch.

    What the function reads besides its arguments is compared at each call, and where it changed the function is
    recorded again: globals, closure variables, defaults, attributes of objects, classes and Python modules, and what
    lists, dicts, sets, arrays of numbers and context variables hold; in the function itself, in all Python functions
    that it calls, and in the backward of an `rl.autograd.Function`. Numbers, strings, None and tuples of them are
    compared by value, functions and other objects by identity. Of a tensor that is no argument, but has a name of its
    own or lies in a list, shape, dtype, `requires_grad` and whether it has a `grad` are compared. Not seen is what code
    in C keeps to itself, nor what objects hold that are found in a Python module by a name that is computed. Random
    numbers, clocks, files and iterators are read once, while the function is recorded: pass what they give as an
    argument.

    When an argument requires grad, backward is recorded too and runs in few launches as well. It recomputes a value
    inside a chain if the value's inputs are kept anyway, so that the value need not be kept. Every tensor is freed at
    its last use, and each gradient goes to its leaf as soon as it is made. `rl.compile` also works as a decorator, with
    and without `variant`.

    Where only some of several results go backward, only what lies behind these is run, and what they do not depend on
    gets no gradient. The results of one call are one node of the graph: to go backward from one and later from another,
    pass ``retain_graph=True`` to the first, also where the two have nothing in common.

    The tensors of a module are arguments too: of a module that is compiled (``rl.compile(model)``), and of one that the
    function gets as an argument, closes over, names as a global, or finds in the object whose method it is. The next
    call sees what was written to them, and their gradients add up as usual. While a function is recorded, no other
    thread may use its modules; calls of compiled functions wait.

    Parameters
    ----------
    function : callable
        Takes tensors, nested tuples, lists and dicts of them, modules and other hashable arguments, and returns
        tensors, nested or not, and plain values. It must do the same ops whenever it is called with the same key.
        Anything else that it does, such as printing, happens only when it is recorded; ranges that it opens are not
        seen. A tensor that it keeps then, such as in a cache of its own, has no values.
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

    Warns
    -----
    UserWarning
        Once for each reason, when the function cannot be recorded; it then runs as it is written. This happens when it
        reads a value of any tensor (``.item()``, ``if x > 0``), draws random numbers, writes into an argument or into a
        part of a tensor, also by an array (``x[index] = y``), uses a tensor that is neither an argument nor a module's,
        or calls `backward` (``rl.autograd.grad`` can be compiled). Also when it reads a `grad` or sets one, changes a
        `requires_grad`, assigns an attribute of a module, puts tensors into a list from elsewhere or changes one among
        its arguments, and when there was an error, even one that it caught. Also when one value that it reads was seen
        with 8 values, and when there are more than 100000.

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
