"""The state of an optimizer that is loaded: what it must be, and copies of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from .._arguments import is_integer
from .._core import Tensor, empty_like
from .._numbers import number

MOMENTS = ("exp_avg", "exp_avg_sq")
_MOST_STEPS = 2**53  # each whole number up to there is a float


def check_places(state: Mapping[Any, Any], groups: Iterable[Mapping[str, Any]]) -> None:
    """ValueError for groups that do not name each tensor by one number, and for entries of no tensor in the groups."""
    places = [place for group in groups for place in group["params"]]
    if not all(map(is_integer, places)) or len(set(places)) < len(places):
        raise ValueError(f"[load_state_dict] params: expected the number of each tensor once, got {places!r}")
    if unknown := [place for place in state if place not in places]:
        hint = "; write {int(place): entry ...}" if isinstance(unknown[0], str) else ""
        raise ValueError(f"[load_state_dict] state: expected the numbers of tensors, got {unknown[0]!r}{hint}")


def entry_of(entry: Mapping[str, Any], param: Tensor, place: Any) -> dict[str, Any]:
    """A copy of an entry, because its moments may be those of another tensor of the same optimizer."""
    if not isinstance(entry, Mapping) or not entry.keys() >= {"step", *MOMENTS}:
        raise ValueError(f"[load_state_dict] state of {place}: expected step, exp_avg and exp_avg_sq, got {entry!r}")
    step = number(f"[load_state_dict] step of {place}", entry["step"])
    if not 0 <= step <= _MOST_STEPS or step != int(step):
        raise ValueError(f"[load_state_dict] step of {place}: expected a whole number from 0 to 2^53, got {step}")
    for name in MOMENTS:
        if not isinstance(moment := entry[name], Tensor):
            raise TypeError(f"[load_state_dict] {name} of {place}: expected a rooflab tensor, got {type(moment)}")
        if moment.shape != param.shape:
            raise ValueError(f"[load_state_dict] {name} of {place}: expected {param.shape}, got {moment.shape}")
        if not moment.dtype.is_floating_point:
            raise ValueError(f"[load_state_dict] {name} of {place}: expected a floating dtype, got {moment.dtype}")
    squares = entry["exp_avg_sq"]
    if squares.device.type != "meta" and not bool((squares >= 0).all()):
        raise ValueError(f"[load_state_dict] exp_avg_sq of {place}: expected squares, got numbers below 0, or NaN")
    return {"step": int(step)} | {name: empty_like(param).copy_(entry[name].detach()) for name in MOMENTS}


def steps_on_device(state: Mapping[Tensor, Mapping[str, Any]], numbers: Mapping[Tensor, int]) -> dict[Tensor, Any]:
    """The numbers of the steps, written to the tensors of `state` where all that share one get the same number."""
    steps: dict[Tensor, Any] = dict(numbers)
    sharing: dict[Tensor, list[Tensor]] = {}
    for param, entry in state.items():
        if isinstance(entry["step"], Tensor):
            sharing.setdefault(entry["step"], []).append(param)
    for step, params in sharing.items():
        if all(param in numbers for param in params) and len({numbers[param] for param in params}) == 1:
            step.fill_(numbers[params[0]])
            steps.update(dict.fromkeys(params, step))
    return steps


def group_of(group: Mapping[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """The options of a group, with a rate on the device where there was one. What is capturable stays so."""
    made = {**own, **{name: copy.copy(value) for name, value in group.items()}, "params": own["params"]}
    made["capturable"] = own["capturable"] or made["capturable"]
    if isinstance(rate := own["lr"], Tensor):
        made["lr"] = rate.copy_(group["lr"]) if isinstance(group["lr"], Tensor) else rate.fill_(group["lr"])
    return made
