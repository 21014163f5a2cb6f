"""What attention costs over the sequence length: pairs of bars, and lines; what ran out of memory is shown as that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from ..units import human
from .style import COLORS, GREY, MARKERS, figure
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


def _read(series: Series, quantity: str) -> tuple[_Quantity, list[int], dict[str, dict[int, _Point | None]]]:
    """The quantity, all lengths, and each series in base units; None is out of memory."""
    if quantity not in _QUANTITIES:
        raise ValueError(f"[plots] quantity: expected 'latency' or 'memory', got {quantity!r}")
    if not series:
        raise ValueError("[plots] series: expected at least one, got none")
    kind = _QUANTITIES[quantity]
    read: dict[str, dict[int, _Point | None]] = {}
    for name, values in series.items():
        if not values:
            raise ValueError(f"[plots] series {name!r}: expected at least one length, got none")
        read[name] = {}
        for length in sorted(values):
            quantiles(f"series {name!r}: length", length, ("", "median_length", ""))
            read[name][length] = None
            if (value := values[length]) is not None:
                numbers = quantiles(f"series {name!r} at {length}", value, kind.names)
                read[name][length] = _Point(*(number * kind.scale for number in numbers))
    lengths = sorted({length for values in read.values() for length in values})
    if all(point is None for values in read.values() for point in values.values()):
        raise ValueError("[plots] series: every entry ran out of memory")
    return kind, lengths, read


def plot_flash_attention_improvement(
    table: Series, quantity: str = "latency", title: str | None = None, note: str | None = None
) -> Figure:
    """Standard attention against flash attention: a pair of bars for each length, the ratio above it.

    Parameters
    ----------
    table : mapping of str to mapping of int to value or None
        Two series, the one to improve on first: ``{"standard": {512: ..., 1024: ...}, "flash": {...}}``. A value is
        a Timing or milliseconds, a MemoryUse or bytes; None ran out of memory.
    quantity : str
        ``"latency"`` or ``"memory"``.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        With a logarithmic axis: equal ratios are equal heights. A bar that ran out of memory reaches the top.

    Raises
    ------
    ValueError
        If there are not two series, one is empty, or a value is not finite and positive.

    Examples
    --------
    >>> figure = plot_flash_attention_improvement(
    ...     {"standard": {1024: 4.0, 2048: 16.0, 4096: None}, "flash": {1024: 2.0, 2048: 5.0, 4096: 17.0}}
    ... )
    """
    if len(table) != 2:
        raise ValueError(f"[plots] table: expected two series, standard and flash, got {len(table)}")
    kind, lengths, read = _read(table, quantity)
    points = [point for values in read.values() for point in values.values() if point]
    bottom, top = 0.4 * min(point.low for point in points), 3.5 * max(point.high for point in points)
    with figure(max(5.5, 1.8 + 1.0 * len(lengths)), 4.2) as made:
        axes = made.add_subplot()
        axes.set_yscale("log")
        axes.set_ylim(bottom, top)
        for index, values in enumerate(read.values()):
            color, shift = COLORS[index], 0.2 * (2 * index - 1)
            for place, length in enumerate(lengths):
                point = values.get(length)
                if point:
                    axes.bar(place + shift, point.middle - bottom, 0.38, bottom, color=color)
                    if point.high > point.low:
                        spread = [[point.middle - point.low], [point.high - point.middle]]
                        axes.errorbar(place + shift, point.middle, spread, color="black", capsize=2.5, lw=1)
                elif length in values:
                    axes.bar(place + shift, top - bottom, 0.38, bottom, fc="none", ec=color, hatch="////", lw=0.8)
                    axes.text(place + shift, (bottom * top) ** 0.5, "out of memory", rotation=90, ha="center",
                              va="center", color=color, fontsize=9, fontweight="bold",
                              bbox={"fc": "white", "ec": "none", "pad": 2})  # fmt: skip
        before, after = read.values()
        for place, length in enumerate(lengths):
            first, second = before.get(length), after.get(length)
            if first and second:
                axes.annotate(_ratio(first.middle / second.middle), (place, max(first.high, second.high)), (0, 5),
                              textcoords="offset points", ha="center", fontweight="bold")  # fmt: skip
        axes.set_xticks(range(len(lengths)), [str(length) for length in lengths])
        axes.set_xlim(-0.6, len(lengths) - 0.4)
        axes.grid(axis="x", visible=False)
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("sequence length L")
        _value_axis(axes, kind, read)
        swatches = [Patch(color=COLORS[index], label=name) for index, name in enumerate(read)]
        made.legend(handles=swatches, loc="outside upper right", ncols=2)
        _head_and_foot(made, axes, title, [f"above each pair: {' / '.join(read)}", *_absent(read, lengths), note])
    return made


def plot_length_sweep(
    series: Series, quantity: str = "latency", xlabel: str = "sequence length L", title: str | None = None,
    note: str | None = None,
) -> Figure:  # fmt: skip
    """Latency or memory over the sequence length, one line a series, both axes logarithmic.

    Parameters
    ----------
    series : mapping of str to mapping of int to value or None
        For each series, the value at each length: a Timing or milliseconds, a MemoryUse or bytes; None ran out of
        memory. A length that a series lacks was not measured.
    quantity : str
        ``"latency"`` or ``"memory"``.
    xlabel : str
        What the lengths are.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        A cross at the top marks each length at which a series ran out of memory.

    Raises
    ------
    ValueError
        If there is no series, one is empty, all ran out of memory, or a value is not finite and positive.

    Examples
    --------
    >>> figure = plot_length_sweep({"naive": {256: 1e6, 512: None}, "flash": {256: 1e5, 512: 2e5}}, "memory")
    """
    kind, lengths, read = _read(series, quantity)
    with figure(7.2, 4.4) as made:
        axes = made.add_subplot()
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        crosses = 0
        for index, (name, values) in enumerate(read.items()):
            color = COLORS[index % len(COLORS)]
            rows = [(length, *point) for length, point in values.items() if point]
            if rows:
                x, low, middle, high = np.array(rows, dtype=float).T
                axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            else:
                x, middle = [], []
            axes.plot(x, middle, color=color, marker=MARKERS[index % len(MARKERS)], label=name)
            lost = [length for length, point in values.items() if point is None]
            if lost:
                height = 0.97 - 0.05 * crosses
                crosses += 1
                axes.plot(lost, [height] * len(lost), "X", color=color, ms=8, transform=axes.get_xaxis_transform(),
                          label=f"{name}: out of memory", clip_on=False)  # fmt: skip
        axes.set_xlabel(xlabel)
        axes.xaxis.set_major_locator(FixedLocator(lengths if len(lengths) <= 10 else lengths[:: len(lengths) // 8 + 1]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda length, _: f"{length:g}"))
        axes.set_xlim(lengths[0] / 1.25, lengths[-1] * 1.25)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** (0.06 * (crosses + 1)))
        _value_axis(axes, kind, read)
        made.legend(loc="outside right upper")
        _head_and_foot(made, axes, title, [*_absent(read, lengths), note])
    return made


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2g}x"


def _value_axis(axes: Any, kind: _Quantity, read: Mapping[str, Mapping[int, _Point | None]]) -> None:
    spread = any(point and point.high > point.low for values in read.values() for point in values.values())
    axes.set_ylabel(kind.label + " (median, p20 to p80)" * spread)
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0,) if high / low > 300 else (1.0, 2.0, 5.0), numticks=16))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, kind.unit)))


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
