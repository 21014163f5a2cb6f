"""Where the time of a pass through a model goes, and where its parts stand under the roof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from ..units import human
from .roofline import Roof, draw_roofs
from .style import COLORS, GREY, caption, figure, freeze_layout, place_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOUND_COLORS = {"memory": COLORS[0], "compute": COLORS[1]}
_ROWS = 8  # there is room for at least this many, so that a few bars are not thick
_LEAST_SHARE = 0.005  # of the time; parts that take less have no label on the roofline
_LEAST_INTENSITY = 1e-3  # FLOP/byte; what has less only moves data, and would stretch the roofline by many decades


class Part(Protocol):
    """What is drawn of a part of `rl.cost.model`."""

    @property
    def name(self) -> str: ...
    @property
    def work(self) -> Any: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def bound(self) -> str | None: ...


class ModelCost(Protocol):
    """What is drawn of the result of `rl.cost.model`."""

    @property
    def title(self) -> str: ...
    @property
    def machine(self) -> Any: ...
    @property
    def dtype(self) -> str: ...
    @property
    def total(self) -> Part: ...
    @property
    def parts(self) -> Sequence[Part]: ...


def plot_model_cost(cost: ModelCost, title: str | None = None) -> Figure:
    """The parts of a model: the least time of each on the left, on the right their places under the roof.

    A marker's area is the part's share of the time. The diamond is the whole pass. Parts that only move data have no
    marker.

    Parameters
    ----------
    cost : ModelCost
        From `rl.cost.model`, with a machine.
    title : str, optional
        Above the figure; what was asked, if not given.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If the cost has no machine, or counts nothing.

    Examples
    --------
    >>> from rooflab.plots import plot_model_cost
    >>> import rooflab as rl
    >>> figure = plot_model_cost(rl.cost.model("gpt2", length=1024, hardware="T4"))
    """
    if cost.machine is None:
        raise ValueError("[plots] cost: it has no machine; give rl.cost.model a hardware")
    if not cost.total.seconds:
        raise ValueError("[plots] cost: nothing of this pass is counted")
    with figure(11.4, 4.9) as made:
        caption(made, title or cost.title)
        bars, roofline = made.subplots(1, 2, width_ratios=(0.82, 1))
        _draw_times(bars, cost)
        roof = Roof(cost.machine, cost.dtype, GREY, with_cache=False)
        parts = sorted(cost.parts, key=lambda part: -(part.seconds or 0))
        shown = [part for part in parts if _share(part, cost) >= _LEAST_SHARE and _computes(part)]
        _draw_places(roofline, cost, roof, shown)
        bound = {part.bound for part in cost.parts}
        handles: list[Any] = [Patch(color=color) for name, color in _BOUND_COLORS.items() if name in bound]
        texts = [f"{name} binds" for name in _BOUND_COLORS if name in bound]
        if cost.total.work.flops:
            handles.append(Line2D([], [], color="black", marker="D", ls="", ms=6))
            texts.append("whole pass (the area of a circle: the part's share of the time)")
        made.legend(handles, texts, loc="outside lower left", ncols=len(texts))
        _write_names(roofline, freeze_layout(made), cost, roof, shown)
    return made


def _computes(part: Part) -> bool:
    return part.work.flops > 0 and part.work.arithmetic_intensity >= _LEAST_INTENSITY


def _share(part: Part, cost: ModelCost) -> float:
    """Share of a part in the times of all parts, one after the other."""
    return (part.seconds or 0) / sum(other.seconds or 0 for other in cost.parts)


def _draw_times(axes: Any, cost: ModelCost) -> None:
    longest = max(part.seconds or 0 for part in cost.parts)
    for row, part in enumerate(cost.parts):
        seconds = part.seconds or 0
        axes.barh(row, seconds, height=0.66, color=_BOUND_COLORS[str(part.bound)])
        axes.text(seconds + 0.015 * longest, row, f"{human(seconds, 's')}, {_share(part, cost):.1%}", va="center")
    axes.set_yticks(range(len(cost.parts)), [part.name for part in cost.parts])
    around = max(0, _ROWS - len(cost.parts)) / 2 + 0.6
    axes.set_ylim(len(cost.parts) - 1 + around, -around)
    axes.set_xlim(0, longest * 1.45)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, "s") if value else "0"))
    axes.xaxis.get_major_locator().set_params(nbins=5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("least time of each part", fontweight="normal", fontsize=10)


def _draw_places(axes: Any, cost: ModelCost, roof: Roof, parts: list[Part]) -> None:
    intensities = [part.work.arithmetic_intensity for part in (*parts, cost.total) if part.work.flops]
    limits = min([roof.ridge, *intensities]) / 4, max([roof.ridge, *intensities]) * 6
    draw_roofs(axes, [roof], roof, limits)
    for part in parts:
        intensity, color = part.work.arithmetic_intensity, _BOUND_COLORS[str(part.bound)]
        area = 30 + 700 * _share(part, cost)
        axes.scatter(intensity, roof.at(intensity), s=area, color=color, alpha=0.55, lw=1, edgecolor="white", zorder=5)
    if cost.total.work.flops:
        intensity = cost.total.work.arithmetic_intensity
        axes.plot(intensity, roof.at(intensity), marker="D", ms=6, color="black", ls="", zorder=6)
    axes.set_ylim(roof.at(limits[0]) / 3, roof.peak * 4)
    axes.set_title(f"under the roof of {roof.name}, {roof.kind}", fontweight="normal", fontsize=10)


def _write_names(axes: Any, renderer: Any, cost: ModelCost, roof: Roof, parts: list[Part]) -> None:
    """One label for markers that cover each other; the largest is named first."""
    marks: list[Bbox] = []
    labels = [(roof.ridge, roof.peak, f"ridge {human(roof.ridge, 'FLOP/byte')}", GREY)]
    groups: list[tuple[np.ndarray, list[Part]]] = []
    for part in parts:
        intensity = part.work.arithmetic_intensity
        anchor = axes.transData.transform((intensity, roof.at(intensity)))
        half = 3 + 14 * _share(part, cost) ** 0.5
        marks.append(Bbox.from_bounds(anchor[0] - half, anchor[1] - half, 2 * half, 2 * half))
        for where, members in groups:
            if np.hypot(*(anchor - where)) < 9:
                members.append(part)
                break
        else:
            groups.append((anchor, [part]))
    if cost.total.work.flops:
        intensity = cost.total.work.arithmetic_intensity
        text = f"whole pass, {human(intensity, 'FLOP/byte', 4)}"
        labels.append((intensity, float(roof.at(intensity)), text, "black"))
    for _, members in groups:
        intensity = members[0].work.arithmetic_intensity
        text = "\n".join(part.name for part in members)
        labels.append((intensity, float(roof.at(intensity)), text, _BOUND_COLORS[str(members[0].bound)]))
    bottom, middle = axes.get_window_extent().y0, axes.transData.transform((roof.ridge, 1))[0]
    marks.append(Bbox.from_bounds(middle - 95, bottom, 190, 20))
    xs = np.array((axes.get_xlim()[0], roof.ridge, axes.get_xlim()[1]))
    line = axes.transData.transform(np.column_stack((xs, roof.at(xs))))
    place_labels(axes, renderer, labels, marks, [line])
