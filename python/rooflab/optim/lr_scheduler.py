"""Learning rates that follow the steps of an optimizer, under PyTorch's names.

    scheduler = rl.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    for batch in batches:
        ...
        optimizer.step()
        scheduler.step()

`scheduler.step()` sets the learning rate of the step that follows.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, SupportsFloat

from .. import _habits
from .._in_words import in_words
from .scheduler import LRScheduler, check_option

__all__ = ["CosineAnnealingLR", "LRScheduler", "LambdaLR", "LinearLR", "SequentialLR", "StepLR"]


class LambdaLR(LRScheduler):
    """The initial rate times what a function returns for the number of steps.

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
    TypeError
        For what cannot be called.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import LambdaLR
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = LambdaLR(optimizer, lambda step: 1 / (1 + step))
    >>> scheduler.step()
    >>> optimizer.param_groups[0]["lr"]
    0.25
    """

    @in_words
    def __init__(
        self, optimizer: Any, lr_lambda: Callable[[int], float] | Sequence[Callable], last_epoch: int = -1
    ) -> None:
        groups = getattr(optimizer, "param_groups", [])
        several = lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(groups)
        if wrong := [each for each in several if not callable(each)]:
            raise TypeError(f"[LambdaLR] lr_lambda: expected functions of the step, got {wrong[0]!r}")
        self.lr_lambdas = list(several)
        if len(self.lr_lambdas) != len(groups):
            raise ValueError(f"[LambdaLR] lr_lambda: expected {len(groups)} functions, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[float]:
        factors = [function(self.last_epoch) for function in self.lr_lambdas]
        if wrong := [factor for factor in factors if not isinstance(factor, SupportsFloat)]:
            raise TypeError(f"[LambdaLR] lr_lambda: expected a number from it, got {type(wrong[0]).__name__}")
        return [first * factor for first, factor in zip(self.base_lrs, factors, strict=True)]


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
    TypeError
        For anything but an integer, and a gamma that is not a number.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import StepLR
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler, rates = StepLR(optimizer, 2, gamma=0.5), []
    >>> for _ in range(4):
    ...     scheduler.step()
    ...     rates += scheduler.get_last_lr()
    >>> rates
    [1.0, 0.5, 0.5, 0.25]
    """

    @in_words
    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self._check_options({"step_size": step_size, "gamma": gamma})
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        check_option("StepLR", step_size=options["step_size"])
        check_option("StepLR", numbers.Real, -math.inf, gamma=options["gamma"])

    def rate(self, first: float, step: int) -> float:
        """The rate after some steps.

        Parameters
        ----------
        first : float
            The rate that the group began with.
        step : int
            How many steps were taken.

        Returns
        -------
        float
            first gamma^(step // step_size)

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5).rate(1.0, 4)
        0.25
        """
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
        After how many steps the end is reached, 1 or more.

    Raises
    ------
    ValueError
        For factors out of range, and a `total_iters` below 1.
    TypeError
        For anything but a number.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import LinearLR
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    @in_words
    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self._check_options({"start_factor": start_factor, "end_factor": end_factor, "total_iters": total_iters})
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        start, end = options["start_factor"], options["end_factor"]
        check_option("LinearLR", total_iters=options["total_iters"])
        check_option("LinearLR", numbers.Real, -math.inf, start_factor=start, end_factor=end)
        if not 0 < start <= 1 or not 0 <= end <= 1:
            raise ValueError(f"[LinearLR] factors: expected numbers from 0 to 1, got {start} and {end}")

    def rate(self, first: float, step: int) -> float:
        """The rate after some steps.

        Parameters
        ----------
        first : float
            The rate that the group began with.
        step : int
            How many steps were taken.

        Returns
        -------
        float
            That on the line; its end after `total_iters` steps.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> rl.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2).rate(1.0, 1)
        0.75
        """
        share = min(step, self.total_iters) / self.total_iters
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
    TypeError
        For anything but a number.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import CosineAnnealingLR
    >>> import rooflab as rl
    >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = CosineAnnealingLR(optimizer, T_max=2)
    >>> scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    @in_words
    def __init__(self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self._check_options({"T_max": T_max, "eta_min": eta_min})
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        check_option("CosineAnnealingLR", numbers.Real, T_max=options["T_max"])
        check_option("CosineAnnealingLR", numbers.Real, -math.inf, eta_min=options["eta_min"])

    def rate(self, first: float, step: int) -> float:
        """The rate after some steps.

        Parameters
        ----------
        first : float
            The rate that the group began with.
        step : int
            How many steps were taken.

        Returns
        -------
        float
            eta_min + (first - eta_min) (1 + cos(pi step / T_max)) / 2

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> rl.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4).rate(1.0, 4)
        0.0
        """
        return self.eta_min + (first - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2


class SequentialLR(LRScheduler):
    """Schedulers one after the other, such as a warm-up and a cosine. Each counts its steps from its own beginning.

    Parameters
    ----------
    optimizer : AdamW
        That of all of them.
    schedulers : sequence of LRScheduler
        In order; a SequentialLR may be among them. All have set the optimizer's rate when they were made; the first one
        sets it again. Only the whole is stepped.
    milestones : sequence of int
        The steps from which the second, the third ... counts.

    Raises
    ------
    ValueError
        For no schedulers, those of another optimizer, another number of milestones, or some that do not rise.
    TypeError
        For anything but a scheduler, and for milestones that are not integers.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
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

    @in_words
    def __init__(
        self,
        optimizer: Any,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(schedulers, (list, tuple)):
            raise TypeError(f"[SequentialLR] schedulers: expected a list or tuple, got {type(schedulers).__name__}")
        self.schedulers = list(schedulers)
        if not self.schedulers:
            raise ValueError("[SequentialLR] schedulers: expected at least one, got none")
        for each in self.schedulers:
            if not isinstance(each, LRScheduler):
                raise TypeError(f"[SequentialLR] schedulers: expected schedulers, got {type(each).__name__}")
            if each.optimizer is not optimizer:
                raise ValueError("[SequentialLR] schedulers: expected schedulers of this optimizer")
        self._check_options({"milestones": milestones})
        self.milestones = list(milestones)
        super().__init__(optimizer, last_epoch)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        milestones = options["milestones"]
        if not isinstance(milestones, (list, tuple)):
            raise TypeError(f"[SequentialLR] milestones: expected a list or tuple, got {type(milestones).__name__}")
        for step in milestones:
            check_option("SequentialLR", milestones=step)
        is_rising = all(a < b for a, b in pairwise([0, *milestones]))
        if len(milestones) != len(self.schedulers) - 1 or not is_rising:
            raise ValueError(
                f"[SequentialLR] milestones: expected {len(self.schedulers) - 1} rising steps, got {milestones}"
            )

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs, with the states of the schedulers.

        Returns
        -------
        dict of str to object
            Under ``"schedulers"`` a list of theirs.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> parts = [rl.optim.lr_scheduler.LinearLR(optimizer), rl.optim.lr_scheduler.StepLR(optimizer, step_size=2)]
        >>> len(rl.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[5]).state_dict()["schedulers"])
        2
        """
        return super().state_dict() | {"schedulers": [each.state_dict() for each in self.schedulers]}

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        super()._check_state(state_dict)
        states = state_dict["schedulers"]
        if not isinstance(states, (list, tuple)) or len(states) != len(self.schedulers):
            got = len(states) if isinstance(states, (list, tuple)) else repr(states)
            raise ValueError(f"[load_state_dict] expected {len(self.schedulers)} schedulers, got {got}")
        for each, state in zip(self.schedulers, states, strict=True):
            each._check_state(state)

    def _load(self, state_dict: Mapping[str, Any]) -> None:
        super()._load({name: value for name, value in state_dict.items() if name != "schedulers"})
        for each, state in zip(self.schedulers, state_dict["schedulers"], strict=True):
            each._load(state)

    def _rates(self) -> list[float]:
        place = sum(step <= self.last_epoch for step in self.milestones)
        begin = self.milestones[place - 1] if place else 0
        return self.schedulers[place]._move(self.last_epoch - begin)


if not TYPE_CHECKING:  # a type checker would take every name for one of this module

    def __getattr__(name):
        raise _habits.no_attribute(__name__, name)
