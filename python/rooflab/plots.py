"""Figures of the labs: rooflines, latency over size, kernel and memory timelines, comparisons.

Each function returns a matplotlib Figure and never shows it. Medians are drawn with their 20th and 80th
percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from .plot_attention import plot_flash_attention_improvement, plot_length_sweep
from .plot_memory import plot_memory_timeline
from .plot_roofline import plot_roofline
from .plot_style import COLORS, GREY, MARKERS, figure, freeze_layout
from .plot_values import quantiles
from .units import human

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "plot_bars", "plot_flash_attention_improvement", "plot_latency_vs_size", "plot_length_sweep",
    "plot_memory_timeline", "plot_roofline", "plot_timeline",
]  # fmt: skip

_CATEGORY_COLORS = {
    "gemm": COLORS[0],
    "elementwise": COLORS[1],
    "softmax": COLORS[2],
    "layernorm": COLORS[3],
    "memory": COLORS[4],
    "other": "#8c8c8c",
}


def plot_latency_vs_size(
    series: Mapping[str, Mapping[int, Any]],
    xlabel: str = "N",
    title: str | None = None,
    note: str | None = None,
) -> Figure:
    """Latency over problem size, both axes logarithmic, one line and p20..p80 band per series.

    Parameters
    ----------
    series : mapping of str to mapping of int to Timing, float (milliseconds) or None
        For each series, the latency at each size. None, or a size that another series has and this one
        lacks, was left out; the figure says so.
    xlabel : str
        What the sizes are.
    title, note : str, optional
        Above and below the plot. The note says, for example, why sizes were left out.

    Returns
    -------
    Figure
        With two series, the ratio of their medians at the largest size that both have is written beside it.

    Raises
    ------
    ValueError
        If there is no series, a series has no measured size, or a size or latency is not finite and positive.

    Examples
    --------
    >>> figure = plot_latency_vs_size({"gemm": {64: 30.0, 128: 240.0}, "rl.matmul": {64: 0.02, 128: 0.1}})
    """
    if not series:
        raise ValueError("[plots] series: expected at least one, got none")
    lines: dict[str, list[tuple[float, float, float, float]]] = {}
    for name, values in series.items():
        for size in values:
            quantiles(f"series {name!r}: size", size, ("", "median_size", ""))
        measured = {size: timing for size, timing in values.items() if timing is not None}
        if not measured:
            raise ValueError(f"[plots] series {name!r}: no size was measured")
        lines[name] = [
            (
                size,
                *quantiles(f"series {name!r} at {size}", measured[size], ("p20_ms", "median_ms", "p80_ms")),
            )
            for size in sorted(measured)
        ]
    sizes = sorted({size for values in series.values() for size in values})
    with figure(7.2, 4.4) as made:
        axes = made.add_subplot()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        for index, (name, rows) in enumerate(lines.items()):
            x, low, middle, high = np.array(rows, dtype=float).T
            color = COLORS[index % len(COLORS)]
            axes.fill_between(x, low / 1e3, high / 1e3, color=color, alpha=0.2, linewidth=0)
            bars = np.maximum(0, [(middle - low) / 1e3, (high - middle) / 1e3])
            axes.errorbar(x, middle / 1e3, bars, color=color, capsize=2.5, elinewidth=1, lw=0)
            axes.plot(x, middle / 1e3, color=color, marker=MARKERS[index % len(MARKERS)], label=name)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("latency (median, band p20 to p80)")
        axes.xaxis.set_major_locator(FixedLocator(sizes if len(sizes) <= 10 else sizes[:: len(sizes) // 8 + 1]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
        axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: human(seconds, "s")))
        axes.margins(x=0.09, y=0.12)
        axes.legend(loc="upper left")
        if title:
            axes.set_title(title)
        missing = [
            f"{name} at {xlabel} = {', '.join(map(str, absent))}"
            for name, values in series.items()
            if (absent := [size for size in sizes if values.get(size) is None])
        ]
        notes = ([f"not measured: {'; '.join(missing)}"] if missing else []) + ([note] if note else [])
        if notes:
            made.supxlabel("\n".join(notes), fontsize=8, color=GREY)
        if len(lines) == 2:
            _mark_ratio(axes, *({row[0]: row[2] / 1e3 for row in rows} for rows in lines.values()))
    return made


def _mark_ratio(axes: Any, first: Mapping[float, float], second: Mapping[float, float]) -> None:
    shared = sorted(set(first) & set(second))
    if not shared:
        return
    size = shared[-1]
    low, high = sorted((first[size], second[size]))
    if high / low < 1.05:
        return
    axes.annotate("", (size, low), (size, high), arrowprops={"arrowstyle": "<->", "color": GREY, "lw": 0.9})
    axes.annotate(
        f"{high / low:,.0f}x" if high / low >= 10 else f"{high / low:.1f}x",
        (size, math.sqrt(low * high)),
        xytext=(-6, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=GREY,
    )


def plot_bars(values: Mapping[str, Any], unit: str, title: str | None = None, baseline: str | None = None) -> Figure:
    """A few quantities side by side, from zero, each with its ratio to a baseline.

    Parameters
    ----------
    values : mapping of str to number, Measured or Timing
        In `unit`; the median, p20 and p80 of a measurement are used. Timings are in milliseconds.
    unit : str
        ``"launches"``, ``"B"``, ``"ms"``, ``"TFLOP/s"`` ...
    title : str, optional
        Above the plot.
    baseline : str, optional
        The value that ratios are relative to; the smallest if not given.

    Raises
    ------
    ValueError
        If there is no value, one is not finite and positive, or the baseline is not among them.

    Examples
    --------
    >>> figure = plot_bars({"gelu, 8 operations": 72e6, "gelu, fused": 8e6}, "B", title="Bytes moved")
    """
    if not values:
        raise ValueError("[plots] values: expected at least one, got none")
    names = {True: ("p20_ms", "median_ms", "p80_ms"), False: ("p20", "median", "p80")}
    rows = {
        name: quantiles(f"value {name!r}", value, names[hasattr(value, "median_ms")]) for name, value in values.items()
    }
    if baseline is not None and baseline not in rows:
        raise ValueError(f"[plots] baseline: expected one of {', '.join(rows)}, got {baseline!r}")
    reference = rows[baseline][1] if baseline else min(middle for _, middle, _ in rows.values())
    with figure(7.2, 0.9 + 0.5 * len(rows)) as made:
        axes = made.add_subplot()
        longest = max(high for _, _, high in rows.values())
        for row, (name, (low, middle, high)) in enumerate(rows.items()):
            axes.barh(row, middle, height=0.62, color=COLORS[row % len(COLORS)])
            if high > low:
                axes.errorbar(middle, row, xerr=[[middle - low], [high - middle]], color="black", capsize=3, lw=1)
            ratio = "" if len(rows) == 1 or name == baseline else f"   {middle / reference:.3g}x"
            axes.text(high + 0.015 * longest, row, human(middle, unit) + ratio, va="center")
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.set_xlim(0, longest * 1.32)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, unit) if value else "0"))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if title:
            axes.set_title(title)
    return made


def plot_timeline(
    records: Iterable[Any], rows: str = "range", title: str | None = None, note: str | None = None
) -> Figure:
    """Kernels over time, one row per range, op or category, coloured by category.

    Parameters
    ----------
    records : iterable of KernelRecord
        With ``name``, ``op``, ``range``, ``category``, ``start_us`` and ``duration_us``; ``step`` if there
        is one.
    rows : str
        ``"range"``, ``"op"`` or ``"category"``: the attribute that makes a row.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        Time runs from the first kernel's start. Kernels too short to see are widened to a hair, and a note
        says so; each row's launches and summed durations stand at its right.

    Raises
    ------
    ValueError
        If there is no record, or a time is not finite or negative.
    """
    kernels = list(records)
    if not kernels:
        raise ValueError("[plots] records: expected at least one kernel, got none")
    if rows not in ("range", "op", "category"):
        raise ValueError(f"[plots] rows: expected 'range', 'op' or 'category', got {rows!r}")
    for kernel in kernels:
        for field in ("start_us", "duration_us"):
            value = float(getattr(kernel, field))
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"[plots] kernel {kernel.name!r}: {field} must be finite and >= 0, got {value!r}")
    kernels.sort(key=lambda kernel: kernel.start_us)
    origin = kernels[0].start_us
    span = max(max(kernel.start_us + kernel.duration_us for kernel in kernels) - origin, 1e-3)
    hair = span * 0.0025
    by_row: dict[str, list[Any]] = {}
    for kernel in kernels:
        by_row.setdefault(getattr(kernel, rows) or f"(no {rows})", []).append(kernel)
    categories = list(dict.fromkeys(kernel.category or "other" for kernel in kernels))
    spare = [color for color in COLORS if color not in _CATEGORY_COLORS.values()] or ["#8c8c8c"]
    colors = {name: _CATEGORY_COLORS.get(name, spare[index % len(spare)]) for index, name in enumerate(categories)}
    with figure(9.0, 1.5 + 0.38 * len(by_row)) as made:
        axes = made.add_subplot()
        for row, members in enumerate(by_row.values()):
            for category in categories:
                bars = [
                    (kernel.start_us - origin, max(kernel.duration_us, hair))
                    for kernel in members
                    if (kernel.category or "other") == category
                ]
                # A white edge tells neighbours apart; a hair would drown in it.
                edges = [0.6 if width > 2 * hair else 0.0 for _, width in bars]
                if bars:
                    axes.broken_barh(bars, (row - 0.36, 0.72), fc=colors[category], ec="white", lw=edges, zorder=3)
            total = sum(kernel.duration_us for kernel in members)
            plural = "launch" if len(members) == 1 else "launches"
            axes.text(1.01, row, f"{len(members)} {plural}, {human(total, 'us')}", va="center", fontsize=8.5,
                      color=GREY, transform=axes.get_yaxis_transform())  # fmt: skip
        _mark_steps(axes, kernels, origin)
        axes.set_xlim(-0.005 * span, span * 1.01)
        axes.set_ylim(len(by_row) - 0.4, -0.6)
        axes.set_yticks(range(len(by_row)), list(by_row))
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("time since the first kernel")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: human(time, "us") if time else "0"))
        if title:
            axes.set_title(title, pad=18)
        notes = [note] if note else []
        if min(kernel.duration_us for kernel in kernels) < hair:
            notes.append(f"kernels under {human(hair, 'us', 2)} are drawn that wide")
        swatches = [Patch(color=colors[category], label=category) for category in categories]
        made.legend(handles=swatches, title="\n".join(notes) or None, title_fontsize=8, alignment="left",
                    loc="outside lower left", ncols=min(6, len(categories)))  # fmt: skip
        _name_wide_bars(made, axes, by_row, origin)
    return made


def _mark_steps(axes: Any, kernels: Sequence[Any], origin: float) -> None:
    starts: dict[Any, float] = {}
    for kernel in kernels:
        starts.setdefault(getattr(kernel, "step", None), kernel.start_us - origin)
    if len(starts) > 1:
        for step, start in starts.items():
            axes.axvline(start, color=GREY, lw=0.7, ls=":", zorder=1)
            if step is not None:
                axes.annotate(f"step {step}", (start, 1), (2, 2), xycoords=("data", "axes fraction"),
                              textcoords="offset points", fontsize=7.5, color=GREY)  # fmt: skip


def _name_wide_bars(made: Figure, axes: Any, by_row: Mapping[str, Sequence[Any]], origin: float) -> None:
    """Writes the op into every bar that has room for it."""
    renderer = freeze_layout(made)
    for row, members in enumerate(by_row.values()):
        for kernel in members:
            left, right = (
                axes.transData.transform((time, row))[0]
                for time in (kernel.start_us - origin, kernel.start_us - origin + kernel.duration_us)
            )
            if right - left < 14:
                continue
            middle = kernel.start_us - origin + kernel.duration_us / 2
            text = axes.text(middle, row, kernel.op or kernel.name, color="white", fontsize=7, ha="center",
                             va="center", zorder=4, clip_on=True)  # fmt: skip
            if text.get_window_extent(renderer).width > right - left - 4:
                text.remove()
