"""Loss scaling for float16, in which small gradients underflow (Micikevicius, arxiv.org/abs/1710.03740)."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from typing import Any

from ._core import Graph, Tensor, _autograd, _scale_tensors, _sum_squares, full, isfinite
from ._in_words import in_words
from ._numbers import number, whole
from .autograd import no_grad
from .autograd.clearing import grouped, writable_gradient

__all__ = ["GradScaler"]

_SMALLEST, _LARGEST = 2.0**-126, 2.0**127  # of the powers of two that are normal numbers of float32

_KEPT = ("scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker")  # as PyTorch names them


class GradScaler:
    """Keep float16 gradients in range: multiply the loss by a scale, and divide the gradients by it.

    If a gradient overflows nevertheless, the optimizer's step is skipped and the scale shrinks. After some steps
    without overflow it grows. bfloat16 has float32's range and needs none of this.

    The gradients are divided on the device, and their squares are summed there: four launches for 192 tensors. `step`
    reads the sum, so it waits for the device; only where that is infinite or NaN does it look at each tensor. The scale
    lies on the device too, so a `rooflab.Graph` may capture `scale` and `backward`: each replay uses the scale at that
    time.

    Parameters
    ----------
    init_scale : float
        The first scale, from 2^-126 to 2^127. Powers of two round nothing.
    growth_factor, backoff_factor : float
        What the scale is multiplied by when it grows, more than 1, and when it shrinks, between 0 and 1.
    growth_interval : int
        After how many steps in a row without overflow it grows.
    enabled : bool
        False: losses and gradients stay as they are, and every step is taken.

    Raises
    ------
    ValueError
        For a number out of its range, and for what is no number.

    Examples
    --------
    >>> import rooflab as rl
    >>> w = rl.tensor([2.0], requires_grad=True)
    >>> optimizer, scaler = rl.optim.AdamW([w], lr=0.5, weight_decay=0.0), rl.GradScaler(init_scale=1024.0)
    >>> scaler.scale(w.sum()).backward()
    >>> w.grad.tolist()
    [1024.0]
    >>> scaler.step(optimizer)
    True
    >>> scaler.update()
    >>> w.grad.tolist(), round(w.item(), 4), scaler.get_scale()
    ([1.0], 1.5, 1024.0)
    """

    @in_words
    def __init__(
        self,
        *,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        given = {"init_scale": init_scale, "growth_factor": growth_factor, "backoff_factor": backoff_factor}
        self._scale, self._growth_factor, self._backoff_factor = (_in_range(*item) for item in given.items())
        self._growth_interval = whole("[GradScaler] growth_interval", growth_interval, 1)
        self._growth_tracker = 0
        self._enabled = enabled
        self._on_device: dict[Any, Tensor] = {}  # the scale, for each device and dtype of a loss
        self._divided: dict[int, _Division] = {}  # for each tensor whose gradient was divided since the last update
        self._sums: dict[int, Tensor | None] = {}  # for each optimizer with gradients divided since the last update
        self._overflowed: dict[int, bool] = {}  # for each that has stepped since
        self._failed: dict[int, list[float]] = {}  # the gradients of each whose step has raised since

    def __getstate__(self) -> dict[str, Any]:
        """What a copy and a pickle take: not the divisions, whose hooks lie on the tensors of this scaler."""
        return {**self.__dict__, "_divided": {}}

    @in_words
    def scale(self, loss: Tensor) -> Tensor:
        """The loss times the scale, in float32 if the loss is in 16 bits; call `backward` of this.

        Raises
        ------
        TypeError
            For anything but a tensor.
        ValueError
            When the first call is captured by a graph, because it makes the tensor that holds the scale.
        """
        if not isinstance(loss, Tensor):
            raise TypeError(f"[GradScaler] scale: expected a tensor, got {type(loss).__name__}")
        if not self._enabled:
            return loss
        if loss.dtype.itemsize == 2:
            loss = loss.to("float32")
        place = (loss.device, loss.dtype)
        if place not in self._on_device:
            if Graph.is_capturing():
                raise ValueError("[GradScaler] scale: the first call makes a tensor; call it once before the capture")
            self._on_device[place] = full((), self._scale, dtype=loss.dtype, device=loss.device)
        return loss * self._on_device[place]

    def _set_scale(self, scale: float) -> None:
        if scale != self._scale:
            for held in self._on_device.values():
                held.fill_(scale)
        self._scale = scale

    @in_words
    @no_grad
    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's tensors by the scale, for example before clipping them. Otherwise
        `step` does it.

        Raises
        ------
        RuntimeError
            When it was already done since the last `update`, or no loss was ever scaled. New gradients are divided:
            those that backward makes after `zero_grad`, and any after a step that raised. One that is assigned is
            new for another optimizer with the same tensor; for this one it is not, because it may be a clipped one.
        ValueError
            For a gradient in float16: keep parameters in float32, as `rl.autocast` does. For one on "meta" among others
            with numbers. While a graph is captured,
            which would repeat the scale of that moment.
        """
        if not self._enabled:
            return
        if Graph.is_capturing():
            raise ValueError("[GradScaler] unscale_: a graph would repeat the scale of its capture; call it after it")
        if not self._on_device:
            raise RuntimeError("[GradScaler] no loss was scaled; write scaler.scale(loss).backward()")
        if self._are_divided(optimizer):
            raise RuntimeError("[GradScaler] unscale_: the gradients are divided already; update() ends a step")
        gradients = _gradients(optimizer)
        if any(str(gradient.dtype) == "float16" for gradient in gradients):
            raise ValueError("[GradScaler] unscale_: expected gradients in float32, got float16")
        if len({gradient.device.type == "meta" for gradient in gradients}) > 1:
            raise ValueError("[GradScaler] unscale_: expected gradients with numbers, got one on meta")
        whole = [tensor for tensor in _with_gradient(optimizer) if not self._is_divided(tensor, optimizer)]
        for alike in grouped(whole):
            factor = full((), 1 / self._scale, dtype="float64", device=alike[0].device)
            _scale_tensors([writable_gradient(tensor) for tensor in alike], factor)
            for tensor in alike:
                self._forget(id(tensor))
                self._divided[id(tensor)] = _Division(tensor, optimizer)
        squares = [_sum_squares(alike).to(gradients[0].device) for alike in grouped(_gradients(optimizer))]
        self._sums[id(optimizer)] = sum(squares[1:], squares[0]) if squares else None

    def _is_divided(self, tensor: Tensor, optimizer: Any) -> bool:
        """Whether a gradient was divided, for this optimizer or for another that has the same tensor."""
        found = self._divided.get(id(tensor))
        if found is None or found.tensor() is not tensor or found.is_new:
            return False
        return found.owner == id(optimizer) or (tensor.grad is found.gradient and not found.is_added_to)

    def _forget(self, tensor: int) -> None:
        if tensor in self._divided:
            self._divided.pop(tensor).end()

    def _are_divided(self, optimizer: Any) -> bool:
        """Whether the gradients are those that were divided. A step that raised may leave that in doubt."""
        own = list(map(id, _with_gradient(optimizer)))
        if id(optimizer) in self._failed and self._failed[id(optimizer)] != _largest(optimizer):
            del self._sums[id(optimizer)], self._failed[id(optimizer)]
            for tensor in own:
                self._forget(tensor)
        if any(tensor in self._divided and self._divided[tensor].is_new for tensor in own):
            self._sums.pop(id(optimizer), None)
        return id(optimizer) in self._sums

    @in_words
    def step(self, optimizer: Any) -> bool:
        """Take the optimizer's step, unless a gradient is infinite or NaN. None is on "meta".

        After a step that raised, it may be taken again, with the same gradients or with new ones.

        Returns
        -------
        bool
            Whether the step was taken.

        Raises
        ------
        RuntimeError
            When it was already called since the last `update`, or no loss was ever scaled.
        """
        if not self._enabled:
            optimizer.step()
            return True
        if id(optimizer) in self._overflowed:
            raise RuntimeError("[GradScaler] step: this optimizer has stepped already; update() ends a step")
        if not self._are_divided(optimizer):
            self.unscale_(optimizer)
        total = self._sums[id(optimizer)]
        if total is not None and total.device.type == "meta":
            total = None
        # The sum of finite squares may overflow too.
        overflowed = total is not None and not math.isfinite(total.item()) and not _are_finite(optimizer)
        if not overflowed:
            try:
                optimizer.step()
            except BaseException:
                self._failed[id(optimizer)] = _largest(optimizer)
                raise
        self._overflowed[id(optimizer)] = overflowed  # a step that failed may be taken again
        return not overflowed

    @in_words
    def update(self) -> None:
        """End a step: shrink the scale if any gradient overflowed, else let it grow when that is due.

        Raises
        ------
        RuntimeError
            When no optimizer has stepped.
        """
        if not self._enabled:
            return
        if not self._overflowed:
            raise RuntimeError("[GradScaler] update: expected step() before it")
        if any(self._overflowed.values()):
            shrunk = self._scale * self._backoff_factor
            self._set_scale(max(shrunk, _SMALLEST))
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker >= self._growth_interval:
                grown = self._scale * self._growth_factor
                self._set_scale(min(grown, _LARGEST))
                self._growth_tracker = 0
        for tensor in list(self._divided):
            self._forget(tensor)
        for kept in (self._sums, self._overflowed, self._failed):
            kept.clear()

    def get_scale(self) -> float:
        """The scale; 1.0 when not enabled."""
        return self._scale if self._enabled else 1.0

    def state_dict(self) -> dict[str, Any]:
        """The state that a later run resumes from, under PyTorch's names; empty when not enabled."""
        return {name: getattr(self, f"_{name.removeprefix('_')}") for name in _KEPT} if self._enabled else {}

    @in_words
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises
        ------
        ValueError
            When a name is missing, and for what the constructor refuses; nothing changes then.
        TypeError
            For anything but a dict.
        """
        if not self._enabled:
            return
        if not isinstance(state, Mapping):
            raise TypeError(f"[GradScaler] load_state_dict: expected a dict, got {type(state).__name__}")
        missing = [name for name in _KEPT if name not in state]
        if missing:
            raise ValueError(f"[GradScaler] load_state_dict: expected {', '.join(_KEPT)}, got no {', '.join(missing)}")
        scale, *factors = (_in_range(name, state[name]) for name in _KEPT[:3])
        interval, tracker = (whole(f"[GradScaler] {name}", state[name], 1 - i) for i, name in enumerate(_KEPT[3:]))
        self._set_scale(scale)
        self._growth_factor, self._backoff_factor = factors
        self._growth_interval, self._growth_tracker = interval, tracker


class _Division:
    """The division of a tensor's gradient for an optimizer, and whether a backward pass has written to it since."""

    def __init__(self, tensor: Tensor, optimizer: Any) -> None:
        self.owner = id(optimizer)
        self.gradient = tensor.grad  # kept until the update: a Python object that nobody keeps has no lasting identity
        self.is_added_to = self._is_made_anew = False  # as after zero_grad()
        self.tensor = weakref.ref(tensor)  # which holds the hook
        self._hook = _autograd.add_hook(tensor, self._note) if tensor.requires_grad else None

    @property
    def is_new(self) -> bool:
        """Whether backward has made another gradient, and the divided one was not put back since."""
        tensor = self.tensor()
        return self._is_made_anew and tensor is not None and tensor.grad is not self.gradient

    def _note(self, _: Tensor) -> None:
        tensor = self.tensor()
        gradient = None if tensor is None else tensor.grad
        self._is_made_anew |= gradient is None
        self.is_added_to |= gradient is self.gradient

    def end(self) -> None:
        tensor = self.tensor()
        if tensor is not None and self._hook is not None:
            _autograd.remove_hook(tensor, self._hook)


def _with_gradient(optimizer: Any) -> list[Tensor]:
    return [tensor for group in optimizer.param_groups for tensor in group["params"] if tensor.grad is not None]


def _gradients(optimizer: Any) -> list[Tensor]:
    return [grad for tensor in _with_gradient(optimizer) if (grad := tensor.grad) is not None]


def _largest(optimizer: Any) -> list[float]:
    """The largest magnitude of each gradient: division changes it, a copy or a second clipping does not."""
    numbers = [gradient for gradient in _gradients(optimizer) if gradient.numel() and gradient.device.type != "meta"]
    return [gradient.abs().amax().item() for gradient in numbers]


def _are_finite(optimizer: Any) -> bool:
    return all(isfinite(gradient).all().item() for gradient in _gradients(optimizer))


def _in_range(name: str, value: Any) -> float:
    """One of the numbers that are no counts, as a float of the range that its name has."""
    found = number(f"[GradScaler] {name}", value)
    is_right, expected = {
        "growth_factor": (1 < found < math.inf, "a number above 1"),
        "backoff_factor": (0 < found < 1, "a number between 0 and 1"),
    }.get(name, (_SMALLEST <= found <= _LARGEST, "a number from 2^-126 to 2^127"))
    if not is_right:
        raise ValueError(f"[GradScaler] {name}: expected {expected}, got {value}")
    return found
