"""Learning rates that follow the steps of an optimiser, under PyTorch's names.

scheduler = rl.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
for batch in batches:
    ...
    optimizer.step()
    scheduler.step()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _habits
from .._core import Tensor

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearLR", "SequentialLR", "StepLR"]


class LRScheduler:
    """What the schedulers share. A subclass defines `rate(first, step)`: the rate of a group after that many steps.

    Parameters
    ----------
    optimizer : AdamW
        Its groups' "lr" is the rate to begin with, which stays there as "initial_lr"; "lr" is set now and by `step`. A
        rate that is a tensor is written in place, so that a captured graph reads the new one.
    last_epoch : int
        -1 begins anew.

    Raises
    ------
    TypeError
        For what has no `param_groups`.
    ValueError
        For another `last_epoch`: use `load_state_dict` to go on.

    Examples
    --------
    >>> import rooflab as rl
    >>> class Halved(LRScheduler):
    ...     def rate(self, first, step):
    ...         return first * 0.5**step
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        if not hasattr(optimizer, "param_groups"):
            raise TypeError(f"[{type(self).__name__}] optimizer: expected an optimizer, got {type(optimizer).__name__}")
        if last_epoch != -1:
            raise ValueError(
                f"[{type(self).__name__}] last_epoch: expected -1, got {last_epoch}; go on with load_state_dict"
            )
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", float(group["lr"]))
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = 0
        self._set()

    def rate(self, first: float, step: int) -> float:
        """The rate after `step` steps, of a group that began with `first`."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def step(self) -> None:
        """Go one step on; call it after the optimiser's step."""
        self.last_epoch += 1
        self._set()

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as set last."""
        return list(self._last)

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on."""
        return {"last_epoch": self.last_epoch, "base_lrs": list(self.base_lrs)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state. ValueError for one of another number of groups."""
        if len(state_dict["base_lrs"]) != len(self.base_lrs):
            raise ValueError(
                f"[load_state_dict] expected the rates of {len(self.base_lrs)} groups, got {state_dict['base_lrs']}"
            )
        self.last_epoch, self.base_lrs = int(state_dict["last_epoch"]), list(state_dict["base_lrs"])
        self._set()

    def _rates(self) -> list[float]:
        return [self.rate(first, self.last_epoch) for first in self.base_lrs]

    def _set(self) -> None:
        self._last = [float(rate) for rate in self._rates()]
        for group, rate in zip(self.optimizer.param_groups, self._last, strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


class LambdaLR(LRScheduler):
    """The first rate times what a function gives for the number of steps.

    Parameters
    ----------
    optimizer : AdamW
        As for `LRScheduler`.
    lr_lambda : callable or sequence of them
        ``lr_lambda(step)``; one for all groups, or one for each.

    Raises
    ------
    ValueError
        For another number of functions than groups.

    Examples
    --------
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> scheduler.step()
    >>> optimizer.param_groups[0]["lr"]
    0.25
    """

    def __init__(
        self, optimizer: Any, lr_lambda: Callable[[int], float] | Sequence[Callable], last_epoch: int = -1
    ) -> None:
        groups = getattr(optimizer, "param_groups", [])
        self.lr_lambdas = [lr_lambda] * len(groups) if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != len(groups):
            raise ValueError(f"[LambdaLR] lr_lambda: expected {len(groups)} functions, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [first * function(self.last_epoch) for first, function in pairs]


class StepLR(LRScheduler):
    """The rate times gamma after every `step_size` steps.

    Parameters
    ----------
    optimizer : AdamW
        As for `LRScheduler`.
    step_size : int
        How many steps a rate lasts.
    gamma : float
        Factor.

    Raises
    ------
    ValueError
        For a `step_size` below 1.

    Examples
    --------
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler, rates = StepLR(optimizer, 2, gamma=0.5), []
    >>> for _ in range(4):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"[StepLR] step_size: expected 1 or more, got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, first: float, step: int) -> float:
        """first gamma^(step // step_size)."""
        return first * self.gamma ** (step // self.step_size)


class LinearLR(LRScheduler):
    """The first rate times a factor that goes from one number to another in equal steps: a warm-up.

    Parameters
    ----------
    optimizer : AdamW
        As for `LRScheduler`.
    start_factor, end_factor : float
        From 0 to 1; the first is not 0.
    total_iters : int
        After how many steps the end is reached.

    Raises
    ------
    ValueError
        For factors out of range.

    Examples
    --------
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"[LinearLR] factors: expected numbers from 0 to 1, got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, first: float, step: int) -> float:
        """The rate on the line, and its end after that."""
        share = min(step, self.total_iters) / self.total_iters if self.total_iters > 0 else 1.0
        return first * (self.start_factor + (self.end_factor - self.start_factor) * share)


class CosineAnnealingLR(LRScheduler):
    """From the first rate along half a cosine to `eta_min` after `T_max` steps, and up again as the cosine goes on.

    Parameters
    ----------
    optimizer : AdamW
        As for `LRScheduler`.
    T_max : int
        How many steps it falls.
    eta_min : float
        The lowest rate.

    Raises
    ------
    ValueError
        For a `T_max` below 1.

    Examples
    --------
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"[CosineAnnealingLR] T_max: expected 1 or more, got {T_max}")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, first: float, step: int) -> float:
        """eta_min + (first - eta_min) (1 + cos(pi step / T_max)) / 2."""
        return self.eta_min + (first - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class SequentialLR:
    """Schedulers one after the other, such as a warm-up and a cosine. Each counts its steps from its own beginning.

    Parameters
    ----------
    optimizer : AdamW
        That of all of them.
    schedulers : sequence of LRScheduler
        In order. All have set the optimiser's rate when they were made; the first one sets it again.
    milestones : sequence of int
        The steps from which the second, the third ... counts.

    Raises
    ------
    ValueError
        For another number of milestones, or some that do not rise.

    Examples
    --------
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [LinearLR(optimizer, 0.5, total_iters=2), CosineAnnealingLR(optimizer, 4)]
    >>> scheduler, rates = SequentialLR(optimizer, parts, milestones=[2]), []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     scheduler.step()
    >>> [round(rate, 3) for rate in rates]
    [0.5, 0.75, 1.0, 0.854]
    """

    def __init__(self, optimizer: Any, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        rising = all(a < b for a, b in zip([0, *milestones], milestones, strict=False))
        if len(milestones) != len(schedulers) - 1 or not rising or not schedulers:
            raise ValueError(
                f"[SequentialLR] milestones: expected {len(schedulers) - 1} rising steps, got {list(milestones)}"
            )
        if any(each.optimizer is not optimizer for each in schedulers):
            raise ValueError("[SequentialLR] schedulers: expected schedulers of this optimizer")
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = 0
        schedulers[0]._set()

    def _current(self) -> LRScheduler:
        return self._schedulers[sum(step <= self.last_epoch for step in self._milestones)]

    def step(self) -> None:
        """Go one step on; call it after the optimiser's step."""
        self.last_epoch += 1
        current = self._current()
        if self.last_epoch in self._milestones:
            current._set()
        else:
            current.step()

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as set last."""
        return self._current().get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs to go on."""
        return {"last_epoch": self.last_epoch, "schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state."""
        self.last_epoch = int(state_dict["last_epoch"])
        for each, state in zip(self._schedulers, state_dict["schedulers"], strict=True):
            each.load_state_dict(state)
        self._current()._set()


if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
