"""Figures of what was counted: lines over a size, and the shares of the parts of a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_rgb
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..units import human
from .style import COLORS, GREY, figure, ticks_in_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_lines(
    series: Mapping[str, Mapping[int, float]],
    unit: str,
    ylabel: str,
    xlabel: str = "tokens L",
    title: str | None = None,
    levels: Mapping[str, float] | None = None,
    linear: bool = False,
) -> Figure:
    """Counts over a size, one line per series, both axes logarithmic unless `linear`.

    Parameters
    ----------
    series : mapping of str to mapping of int to float
        For each series, the count at each size.
    unit : str
        ``"FLOP"``, ``"B"``, ``"FLOP/byte"`` ...
    ylabel, xlabel : str
        What is counted, and what the sizes are.
    title : str, optional
        Above the plot.
    levels : mapping of str to float, optional
        Horizontal lines with their names: a ridge, a memory's size.
    linear : bool
        Both axes linear, from 0.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no series, one is empty, or a size or a count is not finite and positive.

    Examples
    --------
    >>> figure = plot_lines({"B = 1": {1: 1.0, 1024: 150.0}}, "FLOP/byte", "intensity", levels={"ridge": 217})
    """
    if not series or not all(series.values()):
        raise ValueError("[plots] series: expected at least one, with at least one size each")
    sizes = sorted({size for values in series.values() for size in values})
    drawn: list[tuple[str, float]] = [(f"size in {name!r}", size) for name, values in series.items() for size in values]
    drawn += [(f"{name!r} at {size}", value) for name, values in series.items() for size, value in values.items()]
    for what, number in [*drawn, *((f"level {name!r}", level) for name, level in (levels or {}).items())]:
        if not 0 < number < math.inf:
            raise ValueError(f"[plots] {what}: expected finite and positive, got {number!r}")
    with figure(7.2, 4.2) as made:
        axes = made.add_subplot()
        if not linear:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
        for index, (name, values) in enumerate(series.items()):
            marker = "o" if len(values) == 1 else None  # a line of one point would not be seen
            points = zip(*sorted(values.items()), strict=True)
            axes.plot(*points, color=COLORS[index % len(COLORS)], label=name, marker=marker)
        for name, level in (levels or {}).items():
            axes.axhline(level, color=GREY, ls=(0, (5, 2.5)), lw=1.2, label=name)
        if linear:
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, unit).strip()))
        else:
            first, last = math.ceil(math.log2(sizes[0])), math.floor(math.log2(sizes[-1]))
            powers = range(first, last + 1, (last - first) // 10 + 1)
            axes.xaxis.set_major_locator(FixedLocator([2**power for power in powers]))
            axes.xaxis.set_minor_locator(NullLocator())
            ticks_in_unit(axes, unit)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:g}"))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        if title:
            axes.set_title(title)
        if len(series) + len(levels or {}) > 1:
            made.legend(loc="outside lower center", ncols=3)
    return made


def plot_shares(
    wholes: Mapping[str, Mapping[str, float]], title: str | None = None, colors: Mapping[str, str] | None = None
) -> Figure:
    """The share of each part in a whole: a bar of 100 % for each whole, the parts in the same order and colours.

    Parameters
    ----------
    wholes : mapping of str to mapping of str to float
        For each whole, how much each part has; not negative. ``{"FLOPs": {"scores": 2, "values": 6}, ...}``.
    title : str, optional
        Above the plot.
    colors : mapping of str to str, optional
        Colours of parts that have one in other figures.

    Returns
    -------
    Figure
        A share of 5 % or more is written into its part.

    Raises
    ------
    ValueError
        If there is no whole, a part is negative or not finite, or the parts of a whole add up to nothing.

    Examples
    --------
    >>> figure = plot_shares({"FLOPs": {"scores": 2, "values": 6}, "bytes": {"scores": 1, "values": 1}})
    """
    if not wholes:
        raise ValueError("[plots] wholes: expected at least one, got none")
    for name, parts in wholes.items():
        if not all(0 <= value < math.inf for value in parts.values()) or sum(parts.values()) <= 0:
            raise ValueError(f"[plots] {name!r}: expected parts that are not negative and add up to something")
    names = list(dict.fromkeys(part for parts in wholes.values() for part in parts))
    with figure(7.6, 1.3 + 0.42 * len(wholes)) as made:
        axes = made.add_subplot()
        for row, parts in enumerate(wholes.values()):
            left, whole = 0.0, sum(parts.values())
            for index, part in enumerate(names):
                share = 100 * parts.get(part, 0) / whole
                color = (colors or {}).get(part) or COLORS[index % len(COLORS)]
                axes.barh(row, share, left=left, height=0.68, color=color, edgecolor="white", lw=0.8,
                          label=part if row == 0 else None)  # fmt: skip
                if share >= 5:
                    axes.text(left + share / 2, row, f"{share:.0f} %", ha="center", va="center", fontsize=8.5,
                              color=_readable_on(color))  # fmt: skip
                left += share
        axes.set_yticks(range(len(wholes)), list(wholes))
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if title:
            axes.set_title(title)
        made.legend(loc="outside lower center", ncols=min(len(names), 5))
    return made


def _readable_on(color: Any) -> str:
    """Black or white, whichever stands out."""
    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
