"""The HTML page of a memory timeline: its data and layout; page.html has the drawing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from .. import results
from ..plots.style import COLORS, GREY
from ..units import human

_SMALLEST = 1 / 2000  # of the peak: thinner than a pixel


class Recorded(Protocol):
    """What a page shows of a `Timeline`."""

    @property
    def events(self) -> Sequence[Any]: ...
    @property
    def allocations(self) -> Sequence[Any]: ...
    @property
    def duration_us(self) -> float: ...
    @property
    def resident_bytes(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def retained_bytes(self) -> int: ...
    def by_op(self) -> dict[str, int]: ...
    def by_range(self) -> dict[str, int]: ...


def page(timeline: Recorded, title: str) -> str:
    """The whole file, as text."""
    data = json.dumps(_data(timeline), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return results.page(__package__, "page.html", title=title, summary=_summary(timeline), data=data)


def _summary(timeline: Recorded) -> str:
    peak, resident, retained = (
        human(value, "B") for value in (timeline.peak_bytes, timeline.resident_bytes, timeline.retained_bytes)
    )
    count, duration = len(timeline.events), human(timeline.duration_us, "us")
    counted = f"{count} event{'' if count == 1 else 's'} in {duration}"
    return f"Peak {peak} above the {resident} held before; at the end {retained} above it; {counted}."


def _data(timeline: Recorded) -> dict:
    events, allocations = timeline.events, timeline.allocations
    ends: dict[int, list[int]] = {}
    base = [0]  # goes below zero when older blocks are freed
    for number, event in enumerate(events, start=1):
        base.append(base[-1])
        if allocations[event.allocation].start_us is None:
            base[-1] += event.bytes
        else:
            ends.setdefault(event.allocation, []).append(number)
    spans = {number: (span[0], span[1] if len(span) == 2 else len(events) + 1) for number, span in ends.items()}
    shown = [number for number in spans if allocations[number].bytes >= timeline.peak_bytes * _SMALLEST]
    places = stack([(allocations[number].bytes, *spans[number]) for number in shown], len(events) + 1)
    blocks = [
        {
            "op": allocations[number].op or "user",
            "range": allocations[number].range or "(no range)",
            "device": allocations[number].device,
            "bytes": allocations[number].bytes,
            "start": spans[number][0],
            "end": spans[number][1],
            "kept": allocations[number].end_us is None,
            "points": points,
        }
        for number, points in zip(shown, places, strict=True)
    ]
    return {
        "times": [0.0, *(round(event.time_us, 3) for event in events), round(timeline.duration_us, 3)],
        "levels": [0, *(event.live_bytes - timeline.resident_bytes for event in events)],
        "base": base,
        "peak": timeline.peak_bytes,
        "blocks": blocks,
        "hidden": len(spans) - len(shown),
        "holders": {"op": list(timeline.by_op().items()), "range": list(timeline.by_range().items())},
        "colors": COLORS[:-1],
        "other": GREY,
    }


def stack(blocks: Sequence[tuple[int, int, int]], steps: int) -> list[list[tuple[int, int]]]:
    """Stack blocks in the order of their allocation; when one is freed, those above it come down.

    Parameters
    ----------
    blocks : sequence of (bytes, start, end)
        Alive in the steps from `start` to before `end`, ordered by `start`.
    steps : int
        Number of steps.

    Returns
    -------
    list of list of (step, offset)
        For each block, where its lower edge lies from which step on.

    Examples
    --------
    >>> stack([(10, 0, 2), (20, 1, 3)], 3)
    [[(0, 0)], [(1, 10), (2, 0)]]
    """
    starting: dict[int, list[int]] = {}
    ending: dict[int, list[int]] = {}
    for number, (_, start, end) in enumerate(blocks):
        starting.setdefault(start, []).append(number)
        ending.setdefault(end, []).append(number)
    pile: list[int] = []
    top = 0
    points: list[list[tuple[int, int]]] = [[] for _ in blocks]
    for step in sorted({*starting, *ending}):
        if step >= steps:
            break
        for number in ending.get(step, ()):
            place = pile.index(number)
            pile.pop(place)
            size = blocks[number][0]
            top -= size
            for above in pile[place:]:
                points[above].append((step, points[above][-1][1] - size))
        for number in starting.get(step, ()):
            points[number].append((step, top))
            pile.append(number)
            top += blocks[number][0]
    return points
