"""What attention costs over the sequence length: pairs of points, and lines; out of memory is marked as such."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from ..units import rounded
from .looks import exact, legend, looks, size_axis
from .style import GREY, figure, ticks_in_unit
from .values import quantiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = Mapping[str, Mapping[int, Any]]


class _Quantity(NamedTuple):
    names: tuple[str, str, str]
    scale: float
    unit: str
    label: str


_QUANTITIES = {
    "latency": _Quantity(("p20_ms", "median_ms", "p80_ms"), 1e-3, "s", "latency"),
    "memory": _Quantity(("peak_bytes",) * 3, 1.0, "B", "peak memory above what was held before"),
}


class _Point(NamedTuple):
    low: float
    middle: float
    high: float


def _read(
    series: Series, quantity: str, what: str = "series"
) -> tuple[_Quantity, list[int], dict[str, dict[int, _Point | None]]]:
    """The quantity, all lengths, and each series in base units; None is out of memory. Errors name the parameter."""
    if quantity not in _QUANTITIES:
        raise ValueError(f"[plots] quantity: expected 'latency' or 'memory', got {quantity!r}")
    if not series:
        raise ValueError("[plots] series: expected at least one, got none")
    kind = _QUANTITIES[quantity]
    read: dict[str, dict[int, _Point | None]] = {}
    for name, values in series.items():
        if not values:
            raise ValueError(f"[plots] {what} {name!r}: expected at least one length, got none")
        read[name] = {}
        for length in sorted(values):
            quantiles(f"{what} {name!r}: length", length, ("", "median_length", ""))
            read[name][length] = None
            if (value := values[length]) is not None:
                numbers = quantiles(f"{what} {name!r} at {length}", value, kind.names)
                read[name][length] = _Point(*(number * kind.scale for number in numbers))
    lengths = sorted({length for values in read.values() for length in values})
    if all(point is None for values in read.values() for point in values.values()):
        raise ValueError("[plots] series: every entry ran out of memory")
    return kind, lengths, read


def plot_flash_attention_improvement(
    table: Series, quantity: str = "latency", title: str | None = None, note: str | None = None
) -> Figure:
    """Standard attention against flash attention: a pair of points for each length, with their ratio.

    Parameters
    ----------
    table : mapping of str to mapping of int to value or None
        Two series, the one to improve on first: ``{"standard": {512: ..., 1024: ...}, "flash": {...}}``. A value is
        a Timing or milliseconds, a MemoryUse or bytes; None for out of memory.
    quantity : str
        ``"latency"`` or ``"memory"``.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        With a logarithmic axis: equal ratios are equal distances. A cross at the top stands for out of memory.

    Raises
    ------
    ValueError
        If there are not two series, one is empty, or a value is not finite and positive.

    Examples
    --------
    >>> from rooflab.plots import plot_flash_attention_improvement
    >>> figure = plot_flash_attention_improvement(
    ...     {"standard": {1024: 4.0, 2048: 16.0, 4096: None}, "flash": {1024: 2.0, 2048: 5.0, 4096: 17.0}}
    ... )
    """
    if len(table) != 2:
        raise ValueError(f"[plots] table: expected two series, standard and flash, got {len(table)}")
    kind, lengths, read = _read(table, quantity)
    points = [point for values in read.values() for point in values.values() if point]
    bottom, top = 0.5 * min(point.low for point in points), 2.5 * max(point.high for point in points)
    if any(point is None for values in read.values() for point in values.values()):
        top *= (top / bottom) ** 0.2
    with figure(max(5.5, 1.8 + 1.0 * len(lengths)), 4.2) as made:
        axes = made.add_subplot()
        axes.set_yscale("log")
        axes.set_ylim(bottom, top)
        before, after = read.values()
        for place, length in enumerate(lengths):
            first, second = before.get(length), after.get(length)
            if first and second:
                axes.plot([place, place], [first.middle, second.middle], color=GREY, lw=1, zorder=1)
                axes.annotate(_ratio(first.middle / second.middle), (place, (first.middle * second.middle) ** 0.5),
                              (6, 0), textcoords="offset points", va="center", fontweight="bold")  # fmt: skip
        styles = looks(read)
        for index, (values, look) in enumerate(zip(read.values(), styles.values(), strict=True)):
            color, marker = look.color, look.marker
            for place, length in enumerate(lengths):
                point = values.get(length)
                if not point:
                    continue
                spread = [[point.middle - point.low], [point.high - point.middle]]
                axes.errorbar(place, point.middle, spread, color=color, marker=marker, capsize=2.5, lw=1.2, zorder=3)
            for place, length in enumerate(lengths):
                if length in values and values[length] is None:
                    axes.plot(place, 0.97 - 0.06 * index, "X", color=color, ms=8, transform=axes.get_xaxis_transform())
                    axes.annotate("out of\nmemory", (place, 0.97 - 0.06 * index), (0, -9), ha="center", va="top",
                                  xycoords=axes.get_xaxis_transform(), textcoords="offset points", color=color,
                                  fontsize=8)  # fmt: skip
        axes.set_xticks(range(len(lengths)), [exact(length) for length in lengths])
        axes.set_xlim(-0.6, len(lengths) - 0.4)
        axes.grid(axis="x", visible=False)
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("sequence length L")
        _value_axis(axes, kind, read)
        swatches = [Line2D([], [], color=look.color, marker=look.marker, ls="") for look in styles.values()]
        legend(made, swatches, list(read), "outside upper right")
        _head_and_foot(made, axes, title, [f"beside each pair: {' / '.join(read)}", *_absent(read, lengths), note])
    return made


def plot_length_sweep(
    series: Series, quantity: str = "latency", xlabel: str = "sequence length L", title: str | None = None,
    note: str | None = None, predicted: Mapping[str, Mapping[int, float]] | None = None,
) -> Figure:  # fmt: skip
    """Latency or memory over the sequence length, one line per series, both axes logarithmic.

    Parameters
    ----------
    series : mapping of str to mapping of int to value or None
        For each series, the value at each length: a Timing or milliseconds, a MemoryUse or bytes; None for out of
        memory. A length that a series lacks was not measured.
    quantity : str
        ``"latency"`` or ``"memory"``.
    xlabel : str
        What the lengths are.
    title, note : str, optional
        Above and below the plot.
    predicted : mapping of str to mapping of int to value, optional
        For some of the series, values at lengths that were not run, or ran out of memory: drawn hollow, on a dashed
        line from the measured point beside them.

    Returns
    -------
    Figure
        A cross at the top marks each length at which a series ran out of memory.

    Raises
    ------
    ValueError
        If there is no series, one is empty, all ran out of memory, a value is not finite and positive, or something is
        predicted that was measured.

    Examples
    --------
    >>> from rooflab.plots import plot_length_sweep
    >>> figure = plot_length_sweep({"naive": {256: 1e6, 512: None}, "flash": {256: 1e5, 512: 2e5}}, "memory")
    """
    kind, lengths, read = _read(series, quantity)
    wanted = {name: values for name, values in (predicted or {}).items() if values}
    for name, asked in wanted.items():
        for length, value in asked.items():
            if value is None or read.get(name, {}).get(length) is not None:
                got = "None" if value is None else "one that was measured"
                raise ValueError(f"[plots] predicted {name!r} at {length}: expected a value that is missing, got {got}")
    guessed = _read(wanted, quantity, "predicted")[2] if wanted else {}
    if unknown := guessed.keys() - read.keys():
        raise ValueError(f"[plots] predicted: expected names of series, got {min(unknown)!r}")
    lengths = sorted({*lengths, *(length for values in guessed.values() for length in values)})
    with figure(7.2, 4.4) as made:
        axes = made.add_subplot()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        crosses = 0
        for (name, values), look in zip(read.items(), looks(read).values(), strict=True):
            color, marker = look.color, look.marker
            rows = [(length, *point) for length, point in values.items() if point]
            if rows:
                x, low, middle, high = np.array(rows, dtype=float).T
                axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            else:
                x, middle = [], []
            axes.plot(x, middle, color=color, ls=look.dash, marker=marker, label=name)
            further = {length: point.middle for length, point in guessed.get(name, {}).items() if point}
            if further:
                for line in _joined(dict(zip(x, middle, strict=True)), further):
                    axes.plot(*np.transpose(line), color=color, ls=(0, (2, 2)), lw=1, zorder=1.5)
                axes.plot(list(further), list(further.values()), color=color, marker=marker, mfc="white", mew=1.4,
                          ls="", label=f"{name}: predicted")  # fmt: skip
            lost = [length for length, point in values.items() if point is None]
            if lost:
                height = 0.97 - 0.05 * crosses
                crosses += 1
                axes.plot(lost, [height] * len(lost), ls="", marker=look.cross, color=color, ms=8, clip_on=False,
                          transform=axes.get_xaxis_transform(), label=f"{name}: out of memory")  # fmt: skip
        axes.set_xlabel(xlabel)
        size_axis(axes, lengths, 3.8)
        axes.set_xlim(lengths[0] / 1.25, lengths[-1] * 1.25)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (0.06 * (crosses + 1)))
        _value_axis(axes, kind, read)
        legend(made, *axes.get_legend_handles_labels(), "outside right upper")
        known = {name: {**values, **guessed.get(name, {})} for name, values in read.items()}
        _head_and_foot(made, axes, title, [*_absent(known, lengths), note])
    return made


def _joined(measured: Mapping[float, float], predicted: Mapping[int, float]) -> Iterator[list[tuple[float, float]]]:
    """The lines through predicted points, each from the measured point before them, or else to the one after them."""
    known, lengths = list(measured.items()), list(measured)
    for before, points in itertools.groupby(predicted.items(), lambda point: bisect.bisect(lengths, point[0])):
        run = list(points)
        yield [*known[before - 1 : before], *run] if before else [*run, *known[:1]]


def _ratio(ratio: float) -> str:
    return f"{rounded(ratio, 2)}x"


def _value_axis(axes: Any, kind: _Quantity, read: Mapping[str, Mapping[int, _Point | None]]) -> None:
    spread = any(point and point.high > point.low for values in read.values() for point in values.values())
    axes.set_ylabel(kind.label + " (median, p20 to p80)" * spread)
    ticks_in_unit(axes, kind.unit)


def _absent(read: Mapping[str, Mapping[int, Any]], lengths: list[int]) -> list[str]:
    missing = [
        f"{name} at {', '.join(map(str, absent))}"
        for name, values in read.items()
        if (absent := [length for length in lengths if length not in values])
    ]
    return [f"not measured: {'; '.join(missing)}"] if missing else []


def _head_and_foot(made: Figure, axes: Any, title: str | None, notes: list[str | None]) -> None:
    if title:
        axes.set_title(title)
    text = "\n".join(note for note in notes if note)
    if text:
        made.supxlabel(text, fontsize=8, color=GREY)
