"""Memory in tensors over time, stacked by who holds it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..units import human
from .style import COLORS, GREY, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OTHER = "#bdbdbd"
_OUTLINED = 400  # events; the outline of more would be a black band
_NAMELESS = {"op": "user", "range": "(no range)"}


def plot_memory_timeline(timeline: Any, by: str = "op", title: str | None = None, note: str | None = None) -> Figure:
    """Bytes in tensors over time, stacked, with the peak marked.

    Parameters
    ----------
    timeline : Timeline
        From ``with rl.memory.record() as timeline:``.
    by : str
        ``"op"`` or ``"range"``: what a colour stands for. The six that hold most at the peak have one, the rest
        are one grey.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        Zero is what was held before the recording; older tensors that are freed take the stack below it. The
        legend says what each holds at the peak. Time is the host's.

    Raises
    ------
    ValueError
        If nothing was allocated or freed, or `by` is neither.

    Examples
    --------
    >>> import rooflab as rl
    >>> with rl.memory.record() as timeline:
    ...     _ = rl.exp(rl.ones(1000)) + 1
    >>> figure = plot_memory_timeline(timeline)
    """
    if by not in _NAMELESS:
        raise ValueError(f"[plots] by: expected 'op' or 'range', got {by!r}")
    if not timeline.events:
        raise ValueError("[plots] timeline: nothing was allocated or freed in it")
    times, base, levels = _levels(timeline, by)
    total = base + sum(levels.values())
    peak = int(np.argmax(total))
    order = sorted(levels, key=lambda name: (levels[name][peak], levels[name].max()), reverse=True)
    shown = {name: levels[name] for name in order[:6]}
    if len(order) > 6:
        rest = np.sum([levels[name] for name in order[6:]], axis=0)
        shown["1 other" if len(order) == 7 else f"{len(order) - 6} others"] = rest
    with figure(8.6, 4.2) as made:
        axes = made.add_subplot()
        bottom = base
        for color, (name, level) in zip((*COLORS[:6], _OTHER), shown.items(), strict=False):
            label = f"{name}, {human(level[peak], 'B')}" if level[peak] else name
            axes.fill_between(times, bottom, bottom + level, step="post", color=color, label=label, lw=0)
            bottom = bottom + level
        if len(times) <= _OUTLINED:
            axes.step(times, total, where="post", color="black", lw=0.9)
        axes.axhline(0, color=GREY, lw=0.8, ls="--", zorder=1)
        if timeline.peak_bytes:
            late = times[peak] > 0.75 * times[-1]
            axes.plot(times[peak], total[peak], "o", color="black", ms=5)
            axes.annotate(f"peak {human(timeline.peak_bytes, 'B')}", (times[peak], total[peak]),
                          (-6 if late else 6, 5), textcoords="offset points", ha="right" if late else "left",
                          fontweight="bold")  # fmt: skip
        axes.set_xlim(0, times[-1])
        axes.set_ylim(min(0, 1.05 * base.min()), 1.13 * max(total.max(), 1))
        axes.set_xlabel("time since the recording began")
        axes.set_ylabel("memory in tensors")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: human(time, "us") if time else "0"))
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, "B") if value else "0"))
        axes.grid(axis="x", visible=False)
        if title:
            axes.set_title(title)
        held = f"0 is the {human(timeline.resident_bytes, 'B')} held before" if timeline.resident_bytes else ""
        notes = "\n".join(text for text in (held, note) if text)
        legend = made.legend(title=f"held at the peak, by {by}", loc="outside right upper", alignment="left")
        legend.get_title().set_fontsize(8.5)
        if notes:
            made.supxlabel(notes, fontsize=8, color=GREY)
    return made


def _levels(timeline: Any, by: str) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Times in us, and from each of them on: the bytes below zero, and what each op or range holds."""
    events = timeline.events
    times = np.array([0.0, *(event.time_us for event in events), timeline.duration_us])
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
