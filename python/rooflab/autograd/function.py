"""Ops that users write: `Function`, with what its forward passes on to its backward."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from .. import _core
from .._core import Tensor
from .grad_mode import no_grad


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
    or None, for example if the argument is not a tensor. These are new tensors: other gradients may have the memory of
    those that it gets. What `ctx.save_for_backward` kept is freed after backward.

    Raises
    ------
    TypeError
        From `apply`, when `forward` returned no tensor.
    ValueError
        During backward, when `backward` returned too many or too few gradients, or one that does not fit its argument,
        or wrote into a gradient whose memory others use too.

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
    def forward(ctx: Context, *args: Any) -> Any:
        """Compute the outputs. Override."""
        raise NotImplementedError("[Function] forward: override it as a static method")

    @staticmethod
    def backward(ctx: Context, *gradients: Any) -> Any:
        """Compute a gradient for each argument of forward. Override."""
        raise NotImplementedError("[Function] backward: override it as a static method")

    @classmethod
    def apply(cls, *args: Any) -> Any:
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
