"""Latency over problem size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from .looks import legend, looks, size_axis
from .style import GREY, figure, ticks_in_unit
from .values import quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
        If there is no series, a series has no measured size, a size or latency is not finite and positive, or there
        are more series than can be told apart.

    Examples
    --------
    >>> from rooflab.plots import plot_latency_vs_size
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
        for (name, rows), look in zip(lines.items(), looks(lines).values(), strict=True):
            x, low, middle, high = np.array(rows, dtype=float).T
            color = look.color
            axes.fill_between(x, low / 1e3, high / 1e3, color=color, alpha=0.2, linewidth=0)
            bars = np.maximum(0, [(middle - low) / 1e3, (high - middle) / 1e3])
            spread = bars.any(axis=0)  # of plain numbers there is none
            if spread.any():
                axes.errorbar(
                    x[spread], middle[spread] / 1e3, bars[:, spread], color=color, capsize=2.5, elinewidth=1, lw=0
                )
            axes.plot(x, middle / 1e3, color=color, ls=look.dash, marker=look.marker, label=name)
        axes.set_xlabel(xlabel)
        axes.set_ylabel("latency (median, band p20 to p80)")
        size_axis(axes, sizes, 5.2)
        axes.margins(x=0.09, y=0.12)
        ticks_in_unit(axes, "s")
        if len(lines) <= 4 and max(map(len, lines)) <= 30:
            axes.legend(loc="upper left")
        else:  # it would cover lines
            legend(made, *axes.get_legend_handles_labels(), "outside lower center", most=3)
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


def plot_samples(series: Mapping[str, Sequence[float]], title: str | None = None, note: str | None = None) -> Figure:
    """Samples in the order in which they were taken, with their medians, on a logarithmic axis.

    Parameters
    ----------
    series : mapping of str to sequence of float
        Milliseconds by name.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no series, one is empty, a sample is not finite and positive, or there are more series than can be
        told apart.

    Examples
    --------
    >>> from rooflab.plots import plot_samples
    >>> figure = plot_samples({"first": [9.0, 2.0, 2.1], "second": [0.3, 0.1, 0.1]})
    """
    if not series:
        raise ValueError("[plots] series: expected at least one, got none")
    with figure(7.2, 3.8) as made:
        axes = made.add_subplot()
        axes.set_yscale("log")
        for (name, samples), look in zip(series.items(), looks(series).values(), strict=True):
            if not len(samples):
                raise ValueError(f"[plots] series {name!r}: expected at least one sample, got none")
            for sample in samples:
                quantiles(f"series {name!r}: sample", sample, ("", "median_ms", ""))
            seconds, places = np.array(samples, dtype=float) / 1e3, range(1, len(samples) + 1)
            axes.plot(places, seconds, color=look.color, marker=look.marker, ms=4.5, ls="", label=name)
            axes.axhline(np.median(seconds), color=look.color, ls=look.dash, lw=1)
        axes.set_xlabel("sample, in the order taken")
        axes.xaxis.set_major_locator(MaxNLocator(9, integer=True))
        axes.set_ylabel("latency (lines: medians)")
        ticks_in_unit(axes, "s")
        legend(made, *axes.get_legend_handles_labels(), "outside upper right")
        if title:
            axes.set_title(title)
        if note:
            made.supxlabel(note, fontsize=8, color=GREY)
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
