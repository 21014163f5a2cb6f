"""The base class of learning rate schedulers."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Mapping
from typing import Any

from .._core import Tensor
from .._in_words import in_words

__all__ = ["LRScheduler", "check_option"]


class LRScheduler:
    """What the schedulers share. A subclass defines `rate(first, step)`: the rate of a group after that many steps.

    Each step computes the rate from the first one and the number of steps, whatever the rate is now. So two schedulers
    of one optimizer do not multiply as PyTorch's do: the one that steps last sets the rate. Put them one after the
    other with `SequentialLR`, or multiply inside of one `LambdaLR`.

    Parameters
    ----------
    optimizer : AdamW
        Its groups' "lr" is the rate to begin with, which stays there as "initial_lr"; "lr" is set now and by `step`. A
        rate that is a tensor is written in place, so that a captured graph reads the new one.
    last_epoch : int
        -1 starts from the first step.

    Raises
    ------
    TypeError
        For what has no `param_groups`.
    ValueError
        For another `last_epoch`: use `load_state_dict` to go on.

    Examples
    --------
    >>> from rooflab.optim.lr_scheduler import LRScheduler
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

    _NOT_SAVED = ("optimizer", "lr_lambdas", "schedulers")

    @in_words
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
        self._set(0)

    def rate(self, first: float, step: int) -> float:
        """The rate after some steps. Each scheduler defines it.

        Parameters
        ----------
        first : float
            The rate that the group began with.
        step : int
            How many steps were taken.

        Returns
        -------
        float
            The rate to use now.

        Raises
        ------
        NotImplementedError
            In a class that does not define it.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> scheduler.rate(1.0, 4)
        0.25
        """
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    @in_words
    def step(self) -> None:
        """Advance by one step; call it after the optimizer's step.

        Raises
        ------
        ValueError
            For a rate that is not finite, and for an optimizer with another number of groups than at first. After an
            error no step was counted.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> scheduler.step()
        >>> scheduler.step()
        >>> optimizer.param_groups[0]["lr"]
        0.5
        """
        self._set(self.last_epoch + 1)

    def get_last_lr(self) -> list[float]:
        """The rate of each group, as set last.

        Returns
        -------
        list of float
            In the order of the optimizer's groups.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> scheduler.get_last_lr()
        [1.0]
        """
        return list(self._last_lr)

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` needs.

        Returns
        -------
        dict of str to object
            Everything but the optimizer, functions and other schedulers.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> scheduler.state_dict()["gamma"]
        0.5
        """
        return copy.deepcopy({name: value for name, value in vars(self).items() if name not in self._NOT_SAVED})

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore a state; its options, such as gamma, replace the present ones.

        Parameters
        ----------
        state_dict : mapping
            What `state_dict` gave.

        Raises
        ------
        ValueError, TypeError
            For the state of another kind of scheduler, or of another number of groups, for options that the constructor
            refuses, and for a rate that is not finite; nothing changes then, whatever the error.

        Examples
        --------
        >>> import rooflab as rl
        >>> optimizer = rl.optim.AdamW([rl.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = rl.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> scheduler.load_state_dict(scheduler.state_dict() | {"last_epoch": 2})
        >>> scheduler.get_last_lr()
        [0.5]
        """
        self._check_state(state_dict)
        before = self.state_dict()
        try:
            self._load(state_dict)
            self._set(self.last_epoch)
        except BaseException:
            self._load(before)
            raise

    def _check_state(self, state_dict: Mapping[str, Any]) -> None:
        own = self.state_dict()
        if not isinstance(state_dict, Mapping) or state_dict.keys() != own.keys():
            got = ", ".join(map(str, state_dict)) if isinstance(state_dict, Mapping) else repr(state_dict)
            raise ValueError(
                f"[load_state_dict] expected the state of a {type(self).__name__}: {', '.join(own)}; got {got}"
            )
        rates = state_dict["base_lrs"]
        if not isinstance(rates, (list, tuple)) or len(rates) != len(self.base_lrs):
            raise ValueError(f"[load_state_dict] expected the rates of {len(self.base_lrs)} groups, got {rates}")
        for rate in rates:
            check_option(type(self).__name__, numbers.Real, -math.inf, base_lrs=rate)
        check_option(type(self).__name__, least=0, last_epoch=state_dict["last_epoch"])
        self._check_options(state_dict)

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """ValueError or TypeError for options that are given to the constructor or loaded."""

    def _load(self, state_dict: Mapping[str, Any]) -> None:
        vars(self).update(copy.deepcopy(dict(state_dict)))

    def _rates(self) -> list[float]:
        return [self.rate(first, self.last_epoch) for first in self.base_lrs]

    def _move(self, step: int) -> list[float]:
        """Move to a step, and return the rates there; the optimizer's stay as they are."""
        before, self.last_epoch = self.last_epoch, step
        try:
            rates = self._finite(step)
        except BaseException:
            self.last_epoch = before
            raise
        self._last_lr = rates
        return rates

    def _finite(self, step: int) -> list[float]:
        try:
            rates = [float(rate) for rate in self._rates()]
        except OverflowError:
            rates = [math.inf]
        if not all(map(math.isfinite, rates)):
            raise ValueError(f"[{type(self).__name__}] step: the rate after {step} steps is no finite number")
        return rates

    def _set(self, step: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.base_lrs):
            raise ValueError(
                f"[{type(self).__name__}] optimizer: expected the {len(self.base_lrs)} groups that the scheduler was "
                f"made for, got {len(groups)}; make a new one"
            )
        for group, rate in zip(groups, self._move(step), strict=True):
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate


def check_option(owner: str, kind: Any = numbers.Integral, least: float = 1, **options: Any) -> None:
    """TypeError and ValueError for an option that is not a number, or is below the least one.

    Parameters
    ----------
    owner : str
        The scheduler, for the error.
    kind : type
        What the options are.
    least : float
        The smallest value.
    **options
        By name.

    Raises
    ------
    TypeError, ValueError
        As said.

    Examples
    --------
    >>> check_option("StepLR", step_size=0)
    Traceback (most recent call last):
    ValueError: [StepLR] step_size: expected 1 or more, got 0
    """
    for name, value in options.items():
        if not isinstance(value, kind) or isinstance(value, bool):
            what = "an integer" if kind is numbers.Integral else "a number"
            raise TypeError(f"[{owner}] {name}: expected {what}, got {value!r}")
        if not value >= least or (least == -math.inf and abs(value) == math.inf):
            what = "a finite number" if least == -math.inf else f"{least} or more"
            raise ValueError(f"[{owner}] {name}: expected {what}, got {value}")
