"""What a profile records, under PyTorch's names."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum


class ProfilerActivity(Enum):
    """The host with its ops, or the kernels of a GPU."""

    CPU = "cpu"
    CUDA = "cuda"


def activities_of(given: Iterable[object] | None) -> frozenset[ProfilerActivity]:
    """Members of `ProfilerActivity`, PyTorch's own, or their names; all if None.

    Raises
    ------
    ValueError
        For others, or none.

    Examples
    --------
    >>> sorted(activity.name for activity in activities_of(["cpu"]))
    ['CPU']
    """
    if given is None:
        return frozenset(ProfilerActivity)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"[profile] activities: expected a list of ProfilerActivity, got {given!r}")
    found = set()
    for activity in given:
        name = str(getattr(activity, "name", activity)).upper()
        if name not in ProfilerActivity.__members__:
            raise ValueError(f"[profile] activities: expected ProfilerActivity.CPU or .CUDA, got {activity!r}")
        found.add(ProfilerActivity[name])
    if not found:
        raise ValueError("[profile] activities: expected at least one of ProfilerActivity.CPU and .CUDA, got none")
    return frozenset(found)
