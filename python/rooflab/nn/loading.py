"""What is loaded into a module: it is checked as a whole before anything is written."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._core import Tensor, _overlaps_itself

__all__ = ["Keys", "checked_keys"]


class Keys(NamedTuple):
    """Names that `load_state_dict(strict=False)` did not expect, or missed."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def checked_keys(own: Mapping[str, Tensor], given: Mapping[str, Any], strict: bool) -> Keys:
    """The names that only one of two states has, once all that both have can be copied.

    Parameters
    ----------
    own, given : mapping of str to Tensor
        What is written to, and what is read.
    strict : bool
        Whether all names must be the same.

    Returns
    -------
    Keys
        Empty if `strict`.

    Raises
    ------
    TypeError
        For a value that is no tensor.
    ValueError
        For names that differ, if `strict`, and for tensors that cannot be copied. Numbers that are lost are a warning.

    Examples
    --------
    >>> import rooflab as rl
    >>> checked_keys({"w": rl.ones(2)}, {"w": rl.ones(3)}, strict=True)
    Traceback (most recent call last):
    ValueError: [load_state_dict] of another shape: w: expected (2,), got (3,)
    """
    common = [name for name in own if name in given]
    for name in common:
        if not isinstance(given[name], Tensor):
            raise TypeError(f"[load_state_dict] {name}: expected a tensor, got {type(given[name]).__name__}")
    keys = Keys([name for name in own if name not in given], [name for name in given if name not in own])
    faults = {
        "missing": keys.missing_keys if strict else [],
        "unexpected": keys.unexpected_keys if strict else [],
        "of another shape": [
            f"{name}: expected {own[name].shape}, got {given[name].shape}"
            for name in common
            if own[name].shape != given[name].shape
        ],
        "without numbers, on meta": [
            name for name in common if given[name].device != own[name].device and given[name].device.type == "meta"
        ],
        "expanded in the module": [name for name in common if _overlaps_itself(own[name])],
    }
    if said := [f"{kind}: {_some(names)}" for kind, names in faults.items() if names]:
        raise ValueError(f"[load_state_dict] {'; '.join(said)}")
    if lost := [name for name in common if own[name].device.type == "meta" != given[name].device.type]:
        warnings.warn(
            f"[load_state_dict] on meta in the module, which counts the copies but holds no numbers: {_some(lost)}",
            stacklevel=4,
        )
    return keys


def _some(names: list[str]) -> str:
    return ", ".join(map(str, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
