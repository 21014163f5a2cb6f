"""The roofline figure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator
from matplotlib.transforms import Bbox

from ..roofline import SPECS, Machine, Point, dtype_name, peak, ridge
from ..units import human
from .looks import legend
from .style import COLORS, GREY, MARKERS, figure, freeze_layout, place_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SERIES_COLORS = (COLORS[1], COLORS[2], COLORS[3], COLORS[4], COLORS[6], COLORS[5])
_MOST = math.lcm(len(_SERIES_COLORS), len(MARKERS))  # series, each with a pair of its own of colour and marker
_DASHES = (0, (5, 2.5))
_MACHINE_COLORS = (COLORS[0], COLORS[6], COLORS[5], COLORS[3], COLORS[2], COLORS[1], COLORS[4])
_RIDGES = ("D", "o", "s", "^", "v", "P", "X")
_NAMED = 2  # of the points that share a label


class Roof:
    """One roof: a machine, a dtype, the colour, the marker of its ridge, and the figures of its legend line."""

    def __init__(self, machine: Machine, dtype: str, color: str, with_cache: bool, marker: str = _RIDGES[0]) -> None:
        self.machine, self.dtype, self.color, self.with_cache = machine, dtype, color, with_cache
        self.marker = marker
        self.measured = hasattr(machine, "copy_bandwidth")
        self.bandwidth, self.peak = machine.bandwidth_tb_s * 1e12, peak(machine, dtype) * 1e12
        self.ridge = ridge(machine, dtype)
        self.low, self.high = (self.bandwidth, self.peak), (self.bandwidth, self.peak)
        if self.measured:
            bandwidth, top = machine.bandwidth, machine.peak[dtype]  # type: ignore[attr-defined]
            self.low = (bandwidth.p20 * 1e12, top.p20 * 1e12)
            self.high = (bandwidth.p80 * 1e12, top.p80 * 1e12)

    def at(self, intensity: Any) -> Any:
        return np.minimum(np.asarray(intensity) * self.bandwidth, self.peak)

    @property
    def cache(self) -> float | None:
        """Cache bandwidth in B/s, when it was measured, is above DRAM's, and this is the roof to show it."""
        measured = getattr(self.machine, "cache_bandwidth", None) if self.with_cache else None
        return measured.median * 1e12 if measured and measured.median * 1e12 > self.bandwidth else None

    def cache_line(self, x0: float) -> tuple[list[float], list[float]]:
        """The roof of work that stays in the cache, up to where the ordinary roof takes over."""
        bandwidth = self.cache or self.bandwidth
        return [x0, self.peak / bandwidth, self.ridge], [x0 * bandwidth, self.peak, self.peak]

    @property
    def kind(self) -> str:
        """Where its two figures come from: those of a machine that have no source were given."""
        if self.measured:
            return "measured"
        sources = getattr(self.machine, "sources", {})
        given = [name for name, key in (("bandwidth", "bandwidth"), ("peak", self.dtype)) if key not in sources]
        if len(given) == 2:
            return "as given"
        return "datasheet, dense" + "".join(f", {name} as given" for name in given)

    @property
    def name(self) -> str:
        return re.sub(r"\((R|TM)\)|( CPU)? @.*| \d+-Core Processor| as given$", "", self.machine.name)

    @property
    def label(self) -> str:
        cache = f" (cache, dotted: {human(self.cache, 'B/s')})" if self.cache else ""
        bandwidth, top = human(self.bandwidth, "B/s"), human(self.peak, "FLOP/s")
        return f"{self.name}, {self.kind}: {bandwidth}{cache}, {top} {self.dtype}"


def _as_machines(machines: Any) -> list[Machine]:
    if isinstance(machines, str) or hasattr(machines, "peak_tflop_s"):
        machines = [machines]
    found = [SPECS[one] if isinstance(one, str) else one for one in machines if one is not None]
    if not found:
        raise ValueError("[plots] machines: expected at least one, got none")
    return found


def _as_points(points: Any) -> list[Point]:
    if points is None:
        return []
    if isinstance(points, Mapping):
        points = [value if isinstance(value, Point) else Point(str(name), value) for name, value in points.items()]
    found = list(points)
    if not found:
        raise ValueError("[plots] points: expected at least one, or None for the roofs alone, got none")
    for point in found:
        if not isinstance(point, Point):
            raise ValueError(f"[plots] points: expected a Point, got {point!r}")
    if (count := len({point.series for point in found})) > _MOST:
        raise ValueError(f"[plots] points: expected at most {_MOST} series, got {count}")
    return found


def _family(machine: Any) -> str:
    """Measured ceilings and their own datasheet share a colour."""
    if hasattr(machine, "datasheet"):
        spec = machine.datasheet()
        machine = spec if spec is not None else machine
    return machine.name.split(",")[0]


def _roofs(machines: Sequence[Machine], dtypes: Sequence[str]) -> list[Roof]:
    families = list(dict.fromkeys(_family(machine) for machine in machines))
    turns = (len(families) - 1) // len(_MACHINE_COLORS) + 1
    if turns * len(dtypes) > len(_RIDGES):
        most = len(_RIDGES) // len(dtypes) * len(_MACHINE_COLORS)
        raise ValueError(f"[plots] machines: with {len(dtypes)} dtypes at most {most}, got {len(families)}")
    roofs = []
    for machine in machines:
        turn, place = divmod(families.index(_family(machine)), len(_MACHINE_COLORS))
        color, ridges = _MACHINE_COLORS[place], dict(zip(dtypes, _RIDGES[turn * len(dtypes) :], strict=False))
        having = [dtype for dtype in dtypes if dtype in machine.peak_tflop_s]
        if not having:
            peak(machine, dtypes[0])  # raises, naming what the machine has
        roofs += [Roof(machine, dtype, color, dtype == having[0], ridges[dtype]) for dtype in having]
    return roofs


def plot_roofline(
    machines: Machine | str | Sequence[Machine | str],
    points: Sequence[Point] | Mapping[str, float | Point] | None = None,
    dtype: object | Sequence[object] = "float32",
    title: str | None = None,
) -> Figure:
    """The roofline of one or several machines, with work on and under it.

    Measured roofs are solid with a p20..p80 band, and dotted for work that stays in the last-level cache;
    datasheet roofs, and those of figures without a source, are dashed. Markers of ridges tell apart roofs that share
    a colour. A point with no measured speed is an
    open marker on every machine's roof; a measured one is filled, with its p20..p80 bar. Shading tells the
    memory-bound from the compute-bound side of the first machine's ridge.

    Parameters
    ----------
    machines : MachineSpec, Ceilings, str, or a sequence of them
        Datasheets, measured ceilings, or names in `SPECS`. None is skipped, because `Ceilings.datasheet` may give it.
    points : sequence of Point, or mapping of str to float, optional
        The work. A mapping gives names and arithmetic intensities (FLOP/byte). None draws the roofs alone.
    dtype : str or dtype, or a sequence of them
        The dtypes whose peaks are drawn. Open markers sit on the first one's roof.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        If there is no machine, the points are empty, a point has a figure that is not finite and positive, a machine
        has none of the peaks, or there are more machines, dtypes or series than can be told apart.

    Examples
    --------
    >>> from rooflab.plots import plot_roofline
    >>> figure = plot_roofline("A6000", {f"N={n}": n / 6 for n in (1024, 2048, 4096, 8192)})
    """
    dtypes = [dtype] if isinstance(dtype, (str, type)) or not isinstance(dtype, Sequence) else list(dtype)
    names = [dtype_name(one) for one in dtypes]
    if not names:
        raise ValueError("[plots] dtype: expected at least one, got none")
    work = _as_points(points)
    roofs = _roofs(_as_machines(machines), names)
    first = [roof for roof in roofs if roof.dtype == names[0]] or roofs[:1]
    spread = [point.intensity for point in work] + [roof.ridge for roof in roofs]
    x0, x1 = min(0.25, *spread) / 2, max(spread) * 5
    with figure(8.4, 5.6) as made:
        axes = made.add_subplot()
        draw_roofs(axes, roofs, first[0], (x0, x1))
        series = list(dict.fromkeys(point.series for point in work))
        speeds = _draw_points(axes, work, first, series)
        axes.set_ylim(
            min([roof.at(x0) for roof in roofs] + speeds) / 2.2,
            max([roof.high[1] for roof in roofs] + speeds) * 2.6,
        )
        if title:
            axes.set_title(title)
        handles, texts = _legend(roofs, work, series)
        most = 2 if len(texts) > 4 else 1
        legend(made, handles, texts, "outside lower left", most, handler_map={tuple: HandlerTuple(None)})
        _write_labels(axes, freeze_layout(made), roofs, first, work, series, (x0, x1))
    return made


def _shade(axes: Any, roof: Roof, x0: float, x1: float) -> None:
    axes.axvspan(x0, roof.ridge, color=COLORS[5], alpha=0.10, lw=0, zorder=0)
    axes.axvspan(roof.ridge, x1, color=COLORS[4], alpha=0.10, lw=0, zorder=0)
    for text, edge, side in (("memory-bound", -5, "right"), ("compute-bound", 5, "left")):
        axes.annotate(text, (roof.ridge, 0), (edge, 5), xycoords=("data", "axes fraction"), ha=side,
                      textcoords="offset points", color=GREY, fontsize=8.5, style="italic")  # fmt: skip


def draw_roofs(axes: Any, roofs: Sequence[Roof], shaded: Roof, limits: tuple[float, float]) -> None:
    """Logarithmic axes with roofs between two intensities, and the two sides of one roof's ridge."""
    x0, x1 = limits
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(x0, x1)
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("performance")
    axes.xaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.yaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, "FLOP/s")))
    axes.tick_params(which="minor", left=False, bottom=False)
    _shade(axes, shaded, x0, x1)
    for roof in roofs:
        corners = [x0, roof.ridge, x1]
        axes.plot(corners, roof.at(corners), color=roof.color, ls="-" if roof.measured else _DASHES, zorder=3)
        axes.plot(roof.ridge, roof.peak, marker=roof.marker, ms=4, color=roof.color, zorder=4)
        if roof.cache:
            axes.plot(*roof.cache_line(x0), color=roof.color, ls=":", lw=1.1, zorder=2.5)
        if roof.measured:
            grid = np.geomspace(x0, x1, 200)
            low, high = (np.minimum(grid * bandwidth, top) for bandwidth, top in (roof.low, roof.high))
            axes.fill_between(grid, low, high, color=roof.color, alpha=0.18, lw=0, zorder=2)


def _look(point: Point, series: Sequence[str]) -> tuple[str, str]:
    index = series.index(point.series)
    return _SERIES_COLORS[index % len(_SERIES_COLORS)], MARKERS[index % len(MARKERS)]


def _draw_points(axes: Any, work: Sequence[Point], roofs: Sequence[Roof], series: Sequence[str]) -> list[float]:
    """Draws the points; returns every speed drawn, FLOP/s."""
    speeds: list[float] = []
    for point in work:
        color, marker = _look(point, series)
        if point.tflop_s is None:
            for roof in roofs:
                axes.plot(point.intensity, roof.at(point.intensity), marker=marker, mfc="white", mec=color, mew=1.6,
                          ls="", zorder=5)  # fmt: skip
            speeds += [float(roof.at(point.intensity)) for roof in roofs]
            continue
        middle = point.tflop_s * 1e12
        low, high = ((value or point.tflop_s) * 1e12 for value in (point.p20_tflop_s, point.p80_tflop_s))
        axes.errorbar(point.intensity, middle, [[middle - low], [high - middle]], color=color, marker=marker,
                      capsize=2.5, elinewidth=1.2, ls="", zorder=5)  # fmt: skip
        speeds += [low, high]
    return speeds


def _legend(roofs: Sequence[Roof], work: Sequence[Point], series: Sequence[str]) -> tuple[list[Any], list[str]]:
    handles: list[Any] = []
    texts: list[str] = []
    for roof in roofs:
        marker = roof.marker if len({other.marker for other in roofs}) > 1 else None
        line = Line2D([], [], color=roof.color, ls="-" if roof.measured else _DASHES, marker=marker, ms=4)
        handles.append((Patch(color=roof.color, alpha=0.18, lw=0), line) if roof.measured else line)
        texts.append(roof.label)
    for name in series:
        members = [point for point in work if point.series == name]
        color, marker = _look(members[0], series)
        for measured in (False, True):
            shown = [point for point in members if point.measured is measured]
            if shown:
                bar = ", bar p20 to p80" if any(point.p20_tflop_s or point.p80_tflop_s for point in shown) else ""
                meaning = f"measured{bar}" if measured else "intensity only, drawn on the roof"
                handles.append(Line2D([], [], color=color, marker=marker, ls="", mew=1.6 if not measured else 1,
                                      mfc=color if measured else "white"))  # fmt: skip
                texts.append(f"{name}: {meaning}" if name else meaning)
    return handles, texts


def _write_labels(
    axes: Any,
    renderer: Any,
    roofs: Sequence[Roof],
    first: Sequence[Roof],
    work: Sequence[Point],
    series: Sequence[str],
    limits: tuple[float, float],
) -> None:
    lines = [axes.transData.transform([(x, roof.at(x)) for x in (limits[0], roof.ridge, limits[1])]) for roof in roofs]
    lines += [axes.transData.transform(np.transpose(roof.cache_line(limits[0]))) for roof in roofs if roof.cache]
    marks: list[Bbox] = []
    groups: list[dict[str, Any]] = []
    for point in work:
        heights = [point.tflop_s * 1e12] if point.tflop_s is not None else [roof.at(point.intensity) for roof in first]
        for height in heights:
            x, y = axes.transData.transform((point.intensity, height))
            marks.append(Bbox.from_bounds(x - 6, y - 6, 12, 12))
        if point.tflop_s is not None:
            ends = [(value or point.tflop_s) * 1e12 for value in (point.p20_tflop_s, point.p80_tflop_s)]
            (x, low), (_, high) = axes.transData.transform([(point.intensity, end) for end in ends])
            marks.append(Bbox.from_extents(x - 4, low - 2, x + 4, high + 2))
        anchor = axes.transData.transform((point.intensity, heights[0]))
        for group in groups:
            # Markers that cover each other share one label.
            if group["series"] == point.series and np.hypot(*(anchor - group["anchor"])) < 7:
                group["names"].append(point.name)
                break
        else:
            groups.append({"series": point.series, "anchor": anchor, "names": [point.name],
                           "at": (point.intensity, heights[0]), "color": _look(point, series)[0]})  # fmt: skip
    bottom = axes.get_window_extent().y0
    middle = axes.transData.transform((first[0].ridge, 1))[0]
    marks.append(Bbox.from_bounds(middle - 95, bottom, 190, 20))
    labels: list[tuple[float, float, str, str]] = []
    drawn: list[np.ndarray] = []
    for roof in roofs:
        corner = axes.transData.transform((roof.ridge, roof.peak))
        marks.append(Bbox.from_bounds(corner[0] - 4, corner[1] - 4, 8, 8))
        if all(np.hypot(*(corner - other)) > 12 for other in drawn):
            labels.append((roof.ridge, roof.peak, f"ridge {human(roof.ridge, 'FLOP/byte')}", roof.color))
        drawn.append(corner)
    if len({roof.dtype for roof in roofs}) > 1:
        marks += _name_dtypes(axes, renderer, roofs, limits[1])
    ridges = len(labels)
    labels += [(*group["at"], _join(group["names"]), group["color"]) for group in groups]
    written = place_labels(axes, renderer, labels, marks, lines)
    named = sum(min(len(groups[place - ridges]["names"]), _NAMED) for place in written if place >= ridges)
    if named < len(work):
        axes.set_xlabel(f"{axes.get_xlabel()}; {named} of {len(work)} points are named")


def _name_dtypes(axes: Any, renderer: Any, roofs: Sequence[Roof], x1: float) -> list[Bbox]:
    """Writes the dtype at the right end of each roof that has room for it; returns where, in pixels."""
    taken: list[Bbox] = []
    for roof in sorted(roofs, key=lambda roof: -roof.peak):
        for shift, side in ((3, "bottom"), (-3, "top")):
            text = axes.annotate(
                roof.dtype,
                (x1, roof.peak),
                (-4, shift),
                textcoords="offset points",
                ha="right",
                va=side,
                color=roof.color,
                fontsize=8.5,
            )
            box = text.get_window_extent(renderer)
            ends = [axes.transData.transform((x1, other.peak))[1] for other in roofs if other is not roof]
            if not (any(box.overlaps(other) for other in taken) or any(box.y0 < y < box.y1 for y in ends)):
                taken.append(box)
                break
            text.remove()
    return taken


def _join(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} … {names[-1]}"
