"""A few quantities side by side."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..units import distinct, human
from .looks import bar_axis, row_names
from .style import COLORS, figure
from .values import quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no value, one is not finite and positive, or the baseline is not among them.

    Examples
    --------
    >>> from rooflab.plots import plot_bars
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
        medians = [middle for _, middle, _ in rows.values()]
        write = functools.partial(human, unit=unit)
        times = functools.partial(human, unit="x")
        ratios = [median / reference for median in medians]
        if any(high > low for low, _, high in rows.values()):  # of a measurement, more than three digits are noise
            texts, said = list(map(write, medians)), list(map(times, ratios))
        else:
            texts, said = distinct(medians, write), distinct(ratios, times)
        for row, (name, (low, middle, high)) in enumerate(rows.items()):
            axes.barh(row, middle, height=0.62, color=COLORS[row % len(COLORS)])
            if high > low:
                axes.errorbar(middle, row, xerr=[[middle - low], [high - middle]], color="black", capsize=3, lw=1)
            if len(rows) > 1 and name != baseline:
                texts[row] += f"   {said[row].replace(' ', '')}"
        row_names(axes, range(len(rows)), rows)
        axes.invert_yaxis()
        bar_axis(axes, [high for _, _, high in rows.values()], texts, write)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        if title:
            axes.set_title(title)
    return made
