"""Figures of what was counted: lines over a size, and the shares of the parts of a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.colors import to_rgb
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..units import human
from .looks import DASHES, exact, legend, looks, row_names, size_axis
from .style import GREY, figure, ticks_in_unit

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
        Horizontal lines with their names, at most 6: a ridge, a memory's size.
    linear : bool
        Both axes linear, from 0.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no series, one is empty, a size or a count is not finite and positive, or there are more series
        or levels than can be told apart.

    Examples
    --------
    >>> from rooflab.plots import plot_lines
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
    if len(levels or {}) >= len(DASHES):
        raise ValueError(f"[plots] levels: expected at most {len(DASHES) - 1}, got {len(levels or {})}")
    with figure(7.2, 4.2) as made:
        axes = made.add_subplot()
        if not linear:
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
        for (name, values), look in zip(series.items(), looks(series).values(), strict=True):
            marker = "o" if len(values) == 1 else None  # a line of one point would not be seen
            points = zip(*sorted(values.items()), strict=True)
            axes.plot(*points, color=look.color, ls=look.dash, label=name, marker=marker)
        for dash, (name, level) in zip(DASHES[1:], (levels or {}).items(), strict=False):
            axes.axhline(level, color=GREY, ls=dash, lw=1.2, label=name)
        if linear:
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: exact(size)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, unit).strip()))
        else:
            powers = [2.0**p for p in range(math.ceil(math.log2(sizes[0])), math.floor(math.log2(sizes[-1])) + 1)]
            size_axis(axes, powers if len(powers) > 1 else sizes, 5.6)
            ticks_in_unit(axes, unit)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        if title:
            axes.set_title(title)
        if len(series) + len(levels or {}) > 1:
            legend(made, *axes.get_legend_handles_labels(), "outside lower center", most=3)
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
        If there is no whole, a part is negative or not finite, the parts of a whole add up to nothing, or there are
        more parts than can be told apart.

    Examples
    --------
    >>> from rooflab.plots import plot_shares
    >>> figure = plot_shares({"FLOPs": {"scores": 2, "values": 6}, "bytes": {"scores": 1, "values": 1}})
    """
    if not wholes:
        raise ValueError("[plots] wholes: expected at least one, got none")
    for name, parts in wholes.items():
        if not all(0 <= value < math.inf for value in parts.values()) or sum(parts.values()) <= 0:
            raise ValueError(f"[plots] {name!r}: expected parts that are not negative and add up to something")
    styles = looks((part for parts in wholes.values() for part in parts), colors)
    with figure(7.6, 1.3 + 0.42 * len(wholes)) as made:
        axes = made.add_subplot()
        for row, parts in enumerate(wholes.values()):
            left, whole = 0.0, sum(parts.values())
            for part, look in styles.items():
                share = 100 * parts.get(part, 0) / whole
                axes.barh(row, share, left=left, height=0.68, color=look.color, hatch=look.hatch, edgecolor="white",
                          lw=0.8, label=part if row == 0 else None)  # fmt: skip
                if share >= 5:
                    box = {"fc": look.color, "lw": 0, "pad": 1} if look.hatch else None  # no lines behind the text
                    axes.text(left + share / 2, row, f"{share:.0f} %", ha="center", va="center", fontsize=8.5,
                              color=_readable_on(look.color), bbox=box)  # fmt: skip
                left += share
        row_names(axes, range(len(wholes)), wholes)
        axes.invert_yaxis()
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if title:
            axes.set_title(title)
        legend(made, *axes.get_legend_handles_labels(), "outside lower center", most=5)
    return made


def _readable_on(color: Any) -> str:
    """Black or white, whichever stands out."""
    red, green, blue = to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 else "white"
