"""Memory in tensors over time, stacked by who holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..units import human
from .looks import legend
from .style import COLORS, GREY, caption, figure, in_bytes, memory_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OTHER = "#bdbdbd"
_NAMED = 0.07  # of the recording: a shorter phase has no room for its name
_OUTLINED = 400  # events; the outline of more would be a black band
_NAMELESS = {"op": "made by you", "range": "(no range)"}


def plot_memory_timeline(
    timeline: Any,
    by: str = "op",
    title: str | None = None,
    note: str | None = None,
    over: str = "time",
    binary: bool = False,
) -> Figure:
    """Bytes in tensors over time, stacked, with the peak marked.

    Parameters
    ----------
    timeline : Timeline
        From ``with rl.memory.record() as timeline:``.
    by : str
        ``"op"`` or ``"range"``: what a colour stands for. The six that hold most at the peak have one, the rest
        share one grey.
    title, note : str, optional
        Above and below the plot.
    over : str
        ``"time"``, the host's, or ``"events"``: allocations and frees in their order, which is the same on every run
        and all that a meta device has.
    binary : bool
        Whether sizes are written in GiB (2^30 bytes) and not in GB (1e9 bytes).

    Returns
    -------
    Figure
        Zero is what was held before the recording; when older tensors are freed, the stack goes below zero. Dotted
        lines show where marked phases begin. The legend says what each op or range holds at the peak.

    Raises
    ------
    ValueError
        If nothing was allocated or freed, or `by` or `over` is neither.

    Examples
    --------
    >>> from rooflab.plots import plot_memory_timeline
    >>> import rooflab as rl
    >>> with rl.memory.record() as timeline:
    ...     _ = rl.exp(rl.ones(1000)) + 1
    >>> figure = plot_memory_timeline(timeline)
    """
    with figure(8.6, 4.2) as made:
        axes = made.add_subplot()
        _draw(made, {"": axes}, {"": timeline}, by, note, over, binary)
        if title:
            axes.set_title(title)
    return made


def plot_memory_timelines(
    timelines: Mapping[str, Any],
    by: str = "op",
    title: str | None = None,
    note: str | None = None,
    binary: bool = False,
) -> Figure:
    """Several recordings side by side, with the same memory axis and the same colours.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        Recordings by name. Each has its own time axis, which begins with it.
    by : str
        As in `plot_memory_timeline`. Colours go to those that hold most at the peaks of all.
    title, note : str, optional
        Above and below the plot.
    binary : bool
        Whether sizes are written in GiB (2^30 bytes) and not in GB (1e9 bytes).

    Returns
    -------
    Figure
        The legend says what each op or range holds at the peak of each recording, from the left to the right.

    Raises
    ------
    ValueError
        If there is no recording, nothing was allocated or freed in one, or `by` is neither.

    Examples
    --------
    >>> from rooflab.plots import plot_memory_timelines
    >>> import rooflab as rl
    >>> timelines = {}
    >>> for n in (1000, 2000):
    ...     with rl.memory.record() as timelines[f"n = {n}"]:
    ...         _ = rl.exp(rl.ones(n)) + 1
    >>> figure = plot_memory_timelines(timelines)
    """
    if not timelines:
        raise ValueError("[plots] timelines: expected at least one, got none")
    with figure(4.2 + 2.6 * len(timelines), 4.0) as made:
        pairs = made.subplots(1, len(timelines), sharey=True, squeeze=False)[0]
        _draw(made, dict(zip(timelines, pairs, strict=True)), timelines, by, note, binary=binary)
        for axes, name in zip(pairs, timelines, strict=True):
            axes.set_title(name, fontsize=9.5, fontweight="normal")
        for axes in pairs[1:]:
            axes.set_ylabel("")
        caption(made, title)
    return made


def _draw(
    made: Figure,
    places: Mapping[str, Any],
    timelines: Mapping[str, Any],
    by: str,
    note: str | None,
    over: str = "time",
    binary: bool = False,
) -> None:
    """Each recording on its axes, with one key to the colours."""
    size = in_bytes(binary)
    if over not in ("time", "events"):
        raise ValueError(f"[plots] over: expected 'time' or 'events', got {over!r}")
    if by not in _NAMELESS:
        raise ValueError(f"[plots] by: expected 'op' or 'range', got {by!r}")
    if not all(timeline.events for timeline in timelines.values()):
        raise ValueError("[plots] timeline: nothing was allocated or freed in it")
    drawn = {name: _levels(timeline, by, over) for name, timeline in timelines.items()}
    peaks = {name: int(np.argmax(base + sum(levels.values()))) for name, (_, base, levels) in drawn.items()}
    names = list(dict.fromkeys(name for _, _, levels in drawn.values() for name in levels))

    def weight(name: str) -> tuple[int, int]:
        found = [
            (levels[name][peaks[one]], levels[name].max()) for one, (_, _, levels) in drawn.items() if name in levels
        ]
        return max(at_peak for at_peak, _ in found), max(most for _, most in found)

    names.sort(key=weight, reverse=True)
    groups = {name: [name] for name in names[:6]}
    if len(names) > 6:
        groups["1 other" if len(names) == 7 else f"{len(names) - 6} others"] = names[6:]
    swatches = []
    for color, (label, members) in zip((*COLORS[:6], _OTHER), groups.items(), strict=False):
        held = [
            sum(int(levels[one][peaks[name]]) for one in members if one in levels)
            for name, (_, _, levels) in drawn.items()
        ]
        sizes = _beside(size(bytes) if bytes else "0" for bytes in held)
        swatches.append(Patch(color=color, label=f"{label}, {sizes}" if any(held) else label))
    for name, (times, base, levels) in drawn.items():
        stacked = [sum((levels[one] for one in members if one in levels), 0 * base) for members in groups.values()]
        labels = [str(swatch.get_label()) for swatch in swatches]
        _draw_one(places[name], times, base, dict(zip(labels, stacked, strict=True)), timelines[name], size)
        _mark_phases(places[name], times, timelines[name])
    low = min(0, *(1.05 * base.min() for _, base, _ in drawn.values()))
    high = max(1, *((base + sum(levels.values())).max() for _, base, levels in drawn.values()))
    for axes in places.values():
        axes.set_ylim(low, 1.13 * high)
        axes.set_xlabel("time since the recording began" if over == "time" else "allocations and frees, in their order")
        axes.set_ylabel("memory in tensors")
        axes.xaxis.set_major_locator(MaxNLocator(8 if len(places) == 1 else 4))
        if over == "time":
            axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: human(time, "us") if time else "0"))
        memory_axis(axes.yaxis, low, 1.13 * high, binary)
        axes.grid(axis="x", visible=False)
    resident = [size(timeline.resident_bytes) for timeline in timelines.values()]
    known = any(timeline.resident_bytes for timeline in timelines.values())
    alike = len(set(resident)) == 1
    zero = f"0 is the {resident[0]} held before" if alike else f"0 is what was held before: {_beside(resident)}"
    before = zero if known else ""
    said = [str(swatch.get_label()) for swatch in swatches]
    legend(made, swatches, said, "outside right upper", title=f"held at the peak, by {by}", title_fontsize=8.5,
           alignment="left")  # fmt: skip
    caption(made, None, "\n".join(text for text in (before, note) if text))


def _beside(texts: Iterable[str]) -> str:
    """One text for each panel, from the left to the right."""
    texts = list(texts)
    sides = ("left ", "right ") if len(texts) == 2 else ("",) * len(texts)
    return ", ".join(side + text for side, text in zip(sides, texts, strict=True))


def _draw_one(
    axes: Any,
    times: np.ndarray,
    base: np.ndarray,
    stacked: Mapping[str, np.ndarray],
    timeline: Any,
    size: Callable[[float], str],
) -> None:
    bottom = base
    for color, (label, level) in zip((*COLORS[:6], _OTHER), stacked.items(), strict=False):
        axes.fill_between(times, bottom, bottom + level, step="post", color=color, label=label, lw=0)
        bottom = bottom + level
    if len(times) <= _OUTLINED:
        axes.step(times, bottom, where="post", color="black", lw=0.9)
    axes.axhline(0, color=GREY, lw=0.8, ls="--", zorder=1)
    axes.set_xlim(0, times[-1])
    if timeline.peak_bytes:
        peak = int(np.argmax(bottom))
        late = times[peak] > 0.6 * times[-1]
        axes.plot(times[peak], bottom[peak], "o", color="black", ms=5)
        axes.annotate(f"peak {size(timeline.peak_bytes)}", (times[peak], bottom[peak]), (-6 if late else 6, 5),
                      textcoords="offset points", ha="right" if late else "left", fontweight="bold")  # fmt: skip


def _mark_phases(axes: Any, times: np.ndarray, timeline: Any) -> None:
    """A line where each phase begins, with the name of those that have room for it."""
    across = axes.get_xaxis_transform()
    for phase in getattr(timeline, "phases", ()):
        begin, end = times[phase.events.start + 1], times[phase.events.stop + 1]  # times begin with the recording's
        axes.axvline(begin, color=GREY, lw=0.8, ls=":", zorder=4)
        if end - begin > _NAMED * times[-1]:
            middle = (begin + end) / 2
            axes.text(middle, 0.985, phase.name, transform=across, ha="center", va="top", fontsize=8, color=GREY)


def _levels(timeline: Any, by: str, over: str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Times in us or numbers of events, and from each on: the bytes below zero, and what each op or range holds."""
    events = timeline.events
    times = np.array([0.0, *(event.time_us for event in events), timeline.duration_us])
    if over == "events":
        times = np.arange(len(times))
    names = [
        None if timeline.allocations[event.allocation].start_us is None else getattr(event, by) or _NAMELESS[by]
        for event in events
    ]
    changes = {name: np.zeros(len(times), np.int64) for name in (None, *Counter(names))}
    for place, (name, event) in enumerate(zip(names, events, strict=True), start=1):
        changes[name][place] = event.bytes
    levels = {name: np.cumsum(change) for name, change in changes.items()}
    base = levels.pop(None)
    return times, base, {str(name): level for name, level in levels.items()}
