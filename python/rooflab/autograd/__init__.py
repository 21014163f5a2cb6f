"""Gradients, with the names and conventions that PyTorch users know.

    x = rl.randn(3, 4, requires_grad=True)
    y = rl.gelu(x).sum()
    rl.autograd.saved_tensors(y)    # what the graph holds in memory until backward
    y.backward()                    # x.grad has the shape of x

Ops on a tensor that requires grad are recorded; `backward` runs the record in reverse, and gradients add up in `.grad`
of the leaves. A saved tensor must not be written to before backward: such a write is noticed, and backward raises
ValueError. Writes by other libraries into shared memory (NumPy, DLPack) are not noticed.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, overload

from .. import _core, _habits
from .._core import Tensor
from .._decorated import F, decorated
from .checkpointing import checkpoint as checkpoint

__all__ = [
    "Context",
    "Function",
    "Node",
    "Saved",
    "checkpoint",
    "enable_grad",
    "grad",
    "no_grad",
    "saved_tensors",
    "set_grad_enabled",
]

Node = _core._autograd.Node
Saved = _core._autograd.Saved


class _GradMode:
    """Sets grad mode inside `with`, or while a decorated function runs."""

    def __init__(self, name: str, enabled: bool) -> None:
        self._name, self._enabled = name, enabled
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_core._autograd.set_grad_enabled(self._enabled))

    def __exit__(self, *exception: object) -> None:
        _core._autograd.set_grad_enabled(self._before.pop())

    def __call__(self, function: F) -> F:
        return decorated(function, lambda: _GradMode(self._name, self._enabled), self._name, f"rl.{self._name}()")


@overload
def no_grad(function: None = None) -> _GradMode: ...
@overload
def no_grad(function: F) -> F: ...
def no_grad(function=None):
    """Record nothing for backward inside `with rl.no_grad():`, or in a function decorated with it.

    Parameters
    ----------
    function : callable, optional
        What is decorated; `@rl.no_grad` and `@rl.no_grad()` do the same.

    Returns
    -------
    context or callable
        The context for `with`, or the decorated function.

    Raises
    ------
    TypeError
        When it decorates a class, a generator or an async function.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.no_grad():
    ...     (x * 2).requires_grad
    False
    """
    mode = _GradMode("no_grad", False)
    return mode if function is None else mode(function)


@overload
def enable_grad(function: None = None) -> _GradMode: ...
@overload
def enable_grad(function: F) -> F: ...
def enable_grad(function=None):
    """Record ops again inside `with rl.enable_grad():`, even within `no_grad`; also as a decorator.

    Parameters
    ----------
    function : callable, optional
        What is decorated.

    Returns
    -------
    context or callable
        The context for `with`, or the decorated function.

    Raises
    ------
    TypeError
        When it decorates a class, a generator or an async function.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.no_grad(), rl.enable_grad():
    ...     (x * 2).requires_grad
    True
    """
    mode = _GradMode("enable_grad", True)
    return mode if function is None else mode(function)


class set_grad_enabled:
    """Turn recording on or off: from the call on, or until the end of a `with` block.

    Parameters
    ----------
    mode : bool
        Whether ops are recorded.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(2, requires_grad=True)
    >>> with rl.set_grad_enabled(False):
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        self._before = _core._autograd.set_grad_enabled(bool(mode))

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        _core._autograd.set_grad_enabled(self._before)


def _sequence(name: str, given, kinds=Tensor) -> list:
    tensors = list(given) if isinstance(given, (tuple, list)) else [given]
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, kinds):
            raise TypeError(f"[grad] {name}[{i}]: expected a tensor, got {type(tensor).__name__}")
    return tensors


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool = False) -> tuple[Tensor, ...]:
    """Return the gradients of `outputs` with respect to `inputs`; every `.grad` stays as it is.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        Inputs may be leaves or intermediate results; only gradients on the way to them are computed.
    grad_outputs : Tensor, None or sequence of these, optional
        Gradients of the final quantity with respect to each output. None stands for 1, if the output has one element.
    retain_graph : bool
        Keep the saved tensors, so that backward can run again.

    Returns
    -------
    tuple of Tensor
        One gradient for each input, with its shape, dtype and device.

    Raises
    ------
    ValueError
        When an input does not require grad, or the outputs do not depend on it; when `grad_outputs` do not fit the
        outputs; when what was saved has been freed by an earlier backward.
    TypeError
        When something in the arguments is not a tensor.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.tensor([1.0, 2.0], requires_grad=True)
    >>> rl.autograd.grad((x * x).sum(), x)
    (tensor([2., 4.]),)
    """
    outputs, inputs = _sequence("outputs", outputs), _sequence("inputs", inputs)
    given = [None] * len(outputs)
    if grad_outputs is not None:
        given = _sequence("grad_outputs", grad_outputs, Tensor | None)
    gradients = _core._autograd.grad(outputs, inputs, given, retain_graph)
    found = []
    for i, gradient in enumerate(gradients):
        if gradient is None:
            raise ValueError(f"[grad] inputs[{i}]: the outputs do not depend on it")
        found.append(gradient)
    return tuple(found)


def saved_tensors(y: Tensor) -> list[Saved]:
    """List what the graph of `y` holds in memory for backward: each block of memory once, in the order of recording.

    Each entry has `op` (the first to save it), `shape`, `dtype`, `bytes` and `is_input`: whether it is the memory of a
    leaf or a constant, which is held anyway. The list is empty once backward has freed everything.

    Parameters
    ----------
    y : Tensor
        The end of a graph.

    Returns
    -------
    list of Saved
        Empty for a tensor that does not require grad.

    Examples
    --------
    >>> import rooflab as rl
    >>> x = rl.ones(3, 4, requires_grad=True)
    >>> rl.autograd.saved_tensors(rl.exp(rl.gelu(x)))
    [Saved(op='gelu', shape=(3, 4), dtype=float32, bytes=48, is_input=True), Saved(op='exp', shape=(3, 4), ...)]
    """
    return _core._autograd.saved_tensors(y)


class Context:
    """What `forward` passes on to `backward`: saved tensors, and any attribute set on it.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        For each argument of `forward`, whether a gradient is wanted.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.needs_input_grad = needs_input_grad
        self._to_save: tuple = ()
        self._saved: tuple | None = None
        self._non_differentiable: tuple = ()
        self._materialize_grads = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (inputs, outputs or others) until backward has run. Call once, in forward."""
        for i, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(f"[save_for_backward] tensors[{i}]: expected a tensor, got {type(tensor).__name__}")
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The saved tensors in order, in backward only. ValueError when one of them was written to since."""
        if self._saved is None:
            raise ValueError("[saved_tensors] available in backward only")
        return self._saved

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Declare outputs that have no gradient; integer outputs never have one."""
        self._non_differentiable = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None as the gradient of an output that nothing used."""
        self._materialize_grads = value


class Function:
    """An op of your own: write `forward` and `backward` as static methods, and call `apply`.

    `forward(ctx, *args)` runs without recording and returns a tensor or a tuple. `backward(ctx, *gradients)` gets one
    gradient for each output and returns one for each argument of forward: with the argument's shape, dtype and device,
    or None, for example if the argument is not a tensor. What `ctx.save_for_backward` kept is freed after backward.

    Raises
    ------
    TypeError
        From `apply`, when `forward` returned no tensor.
    ValueError
        During backward, when `backward` returned too many or too few gradients, or one that does not fit its argument.

    Examples
    --------
    >>> import rooflab as rl
    >>> class Cube(rl.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, dy):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * dy
    >>> x = rl.tensor([1.0, 2.0], requires_grad=True)
    >>> Cube.apply(x).sum().backward()
    >>> x.grad
    tensor([ 3., 12.])
    """

    @staticmethod
    def forward(ctx: Context, *args):
        """Compute the outputs. Override."""
        raise NotImplementedError("[Function] forward: override it as a static method")

    @staticmethod
    def backward(ctx: Context, *gradients):
        """Compute a gradient for each argument of forward. Override."""
        raise NotImplementedError("[Function] backward: override it as a static method")

    @classmethod
    def apply(cls, *args):
        """Run `forward`, and record `backward` when an argument requires grad."""
        ctx = Context(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
        with no_grad():
            returned = cls.forward(ctx, *args)
        results = returned if isinstance(returned, (tuple, list)) else (returned,)
        if not any(isinstance(y, Tensor) for y in results):
            raise TypeError(f"[{cls.__name__}] forward: expected a tensor or a tuple with tensors, got {returned!r}")
        differentiable = [
            isinstance(y, Tensor) and y.dtype.is_floating_point and all(y is not z for z in ctx._non_differentiable)
            for y in results
        ]
        # New objects, so that a result kept on ctx does not keep its own graph alive.
        results = [y.detach() if isinstance(y, Tensor) else y for y in results]
        if any(ctx.needs_input_grad) and any(differentiable) and _core.is_grad_enabled():
            _record(cls, ctx, args, results, differentiable)
        return tuple(results) if isinstance(returned, (tuple, list)) else results[0]


@dataclasses.dataclass(frozen=True)
class _Like:
    """What the gradient of a tensor must be."""

    shape: tuple[int, ...]
    dtype: object
    device: str

    @classmethod
    def of(cls, x) -> _Like | None:
        return cls(x.shape, x.dtype, x.device) if isinstance(x, Tensor) else None

    def zeros(self) -> Tensor:
        return _core.zeros(*self.shape, dtype=self.dtype, device=self.device)

    def __str__(self):
        return f"{self.shape} {self.dtype} on {self.device}"


def _record(function, ctx, args, results, differentiable):
    """Put the differentiable `results` (in place) into a node whose rule is function.backward."""
    arguments, outputs = [_Like.of(a) for a in args], [_Like.of(y) for y in results]
    saved, ctx._to_save, ctx._non_differentiable = list(ctx._to_save), (), ()

    def rule(gradients, saved, wanted):
        arrived = iter(gradients)
        given = []
        for like, flows in zip(outputs, differentiable, strict=True):
            gradient = next(arrived) if flows else None
            if gradient is None and ctx._materialize_grads and like and like.dtype.is_floating_point:
                gradient = like.zeros()
            given.append(gradient)
        ctx._saved = tuple(saved)
        try:
            returned = function.backward(ctx, *given)
        finally:
            ctx._saved = None
        return _checked(function, arguments, wanted, returned)

    places = [i for i, flows in enumerate(differentiable) if flows]
    inputs = [a if isinstance(a, Tensor) else None for a in args]
    recorded = _core._autograd.record_function(function.__name__, [results[i] for i in places], inputs, saved, rule)
    for i, y in zip(places, recorded, strict=True):
        results[i] = y


def _argument_names(function, count: int) -> list[str]:
    """Names of forward's arguments after ctx; args[0], args[1] ... for those that a * gathers."""
    parameters = list(inspect.signature(function.forward).parameters.values())[1:]
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [named[i] if i < len(named) else f"{rest}[{i - len(named)}]" for i in range(count)]


def _checked(function, arguments, wanted, returned) -> list[Tensor | None]:
    """Check that there is one gradient or None for each argument; the ValueError names Function and argument."""
    given = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    names = _argument_names(function, len(arguments))
    while len(given) > len(arguments) and given[-1] is None:
        given.pop()
    if len(given) != len(arguments):
        raise ValueError(
            f"[{function.__name__}] backward: expected {len(arguments)} gradients, one for each argument of forward "
            f"({', '.join(names)}), got {len(given)}"
        )
    for i, (name, like, gradient) in enumerate(zip(names, arguments, given, strict=True)):
        if gradient is None:
            continue
        place = f"[{function.__name__}] backward: gradient of {name}:"
        if like is None:
            raise ValueError(f"{place} expected None, since {name} is not a tensor, got {type(gradient).__name__}")
        if not isinstance(gradient, Tensor):
            raise ValueError(f"{place} expected a tensor or None, got {type(gradient).__name__}")
        if wanted[i] and _Like.of(gradient) != like:
            raise ValueError(f"{place} expected {like}, got {_Like.of(gradient)}")
        given[i] = gradient.detach()
    return given


if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
