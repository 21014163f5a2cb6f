"""Kernels over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from ..units import human
from .looks import Look, legend, looks, row_names
from .style import COLORS, GREY, caption, figure, freeze_layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CATEGORY_COLORS = {
    "gemm": COLORS[0],
    "elementwise": COLORS[1],
    "softmax": COLORS[2],
    "layernorm": COLORS[3],
    "memory": COLORS[4],
    "attention": COLORS[5],
    "optimizer": "#7a5195",
    "embedding": "#8a6d3b",
    "other": "#8c8c8c",
}


_ROUNDING = 1e-3  # us; an end is the sum of two rounded numbers
_MOST_LANES = 16  # of a row


def _on(kernels: Iterable[Any]) -> str:
    """ ", on cuda:0"; records that do not say their device say nothing here."""
    devices = sorted({device for kernel in kernels if (device := getattr(kernel, "device", ""))})
    modelled = ": a model, not measured" if any(device.startswith("meta") for device in devices) else ""
    return f", on {' and '.join(devices)}{modelled}" if devices else ""


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
        Time runs from the first kernel's start. Kernels of a row that overlap in time lie in up to 16 lanes of it,
        one under the other; the last lane takes all that are left, and the row says so. Kernels too short to see
        are widened to a hair, and a note says so; each row's launches and summed durations stand at its right.

    Raises
    ------
    ValueError
        If there is no record, or a time is not finite or negative.

    Examples
    --------
    >>> from rooflab.plots import plot_timeline
    >>> import rooflab as rl
    >>> with rl.profile(source="cpu clock") as prof:
    ...     y = rl.gelu(rl.ones(1000))
    >>> figure = plot_timeline(prof.kernels)
    """
    kernels = _checked(records, rows)
    with figure(9.0, 1.5 + 0.38 * _height(_by_row(kernels, rows))) as made:
        axes = made.add_subplot()
        axes.set_xlabel(f"time since the first kernel{_on(kernels)}")
        if title:
            axes.set_title(title, pad=18)
        _draw(made, [axes], [kernels], rows, note)
    return made


def plot_timelines(
    profiles: Mapping[str, Any], rows: str = "range", title: str | None = None, note: str | None = None
) -> Figure:
    """The last step of several profiles, one under the other, on the same time axis and in the same colours.

    Parameters
    ----------
    profiles : mapping of str to Profile
        Finished profiles by name.
    rows : str
        As in `plot_timeline`.
    title, note : str, optional
        Above and below the plot.

    Returns
    -------
    Figure
        As `plot_timeline`, with a pair of axes for each profile.

    Raises
    ------
    ValueError
        If there is no profile, one recorded no kernel, or a time is not finite or negative.

    Examples
    --------
    >>> from rooflab.plots import plot_timelines
    >>> import rooflab as rl
    >>> x, profiles = rl.ones(1000), {}
    >>> for fn in (rl.exp, rl.tanh):
    ...     with rl.profile() as profiles[fn.__name__]:
    ...         _ = fn(x)
    >>> figure = plot_timelines(profiles, rows="op")
    """
    if not profiles:
        raise ValueError("[plots] profiles: expected at least one, got none")
    steps = []
    for profile in profiles.values():
        kernels = list(profile.kernels)
        steps.append(_checked([kernel for kernel in kernels if kernel.step == kernels[-1].step], rows))
    heights = [_height(_by_row(kernels, rows)) + 0.8 for kernels in steps]
    with figure(9.0, 1.3 + 0.38 * sum(heights)) as made:
        pairs = made.subplots(len(steps), 1, sharex=True, height_ratios=heights, squeeze=False)[:, 0]
        caption(made, title)
        for axes, name, kernels in zip(pairs, profiles, steps, strict=True):
            axes.set_title(name + _on(kernels), fontsize=9.5, fontweight="normal")
        pairs[-1].set_xlabel("time since the first kernel")
        _draw(made, list(pairs), steps, rows, note)
    return made


def _checked(records: Iterable[Any], rows: str) -> list[Any]:
    """The kernels by their start."""
    if not isinstance(records, Iterable):
        kind = type(records).__name__
        raise TypeError(f"[plots] records: expected kernels, such as the attribute kernels of a profile, got {kind}")
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
    return sorted(kernels, key=lambda kernel: kernel.start_us)


Lanes = list[list[Any]]  # the kernels of a row; those of one lane do not overlap, but in the last of `_MOST_LANES`


def _by_row(kernels: Sequence[Any], rows: str) -> dict[str, Lanes]:
    found: dict[str, Lanes] = {}
    for kernel in kernels:
        lanes = found.setdefault(getattr(kernel, rows) or f"(no {rows})", [])
        free = [lane for lane in lanes if _is_after(lane[-1], kernel)]
        if free or len(lanes) == _MOST_LANES:
            (free or lanes[-1:])[0].append(kernel)
        else:
            lanes.append([kernel])
    return found


def _is_after(before: Any, kernel: Any) -> bool:
    end = before.start_us + before.duration_us
    takes_time = before.duration_us > 0 and kernel.duration_us > 0
    return kernel.start_us >= end - _ROUNDING and (kernel.start_us > before.start_us or not takes_time)


def _places(by_row: Mapping[str, Lanes]) -> Iterator[tuple[float, float, Lanes]]:
    """The middle, the height and the lanes of each row; rows of several lanes are higher."""
    top = -0.5
    for lanes in by_row.values():
        height = max(1.0, 0.5 * len(lanes))
        yield top + height / 2, height, lanes
        top += height


def _bars(by_row: Mapping[str, Lanes]) -> Iterator[tuple[float, float, Any]]:
    """The middle, the height and the record of each kernel's bar."""
    for middle, height, lanes in _places(by_row):
        each = (height - 0.28) / len(lanes)
        for number, lane in enumerate(lanes):
            for kernel in lane:
                yield middle + (number + 0.5) * each - (height - 0.28) / 2, each, kernel


def _height(by_row: Mapping[str, Lanes]) -> float:
    return sum(height for _, height, _ in _places(by_row))


def _draw(made: Figure, pairs: Sequence[Any], steps: Sequence[Sequence[Any]], rows: str, note: str | None) -> None:
    """Each list of kernels on its axes, all with one time scale and one key to the colours."""
    everything = [kernel for kernels in steps for kernel in kernels]
    ends = [max(kernel.start_us + kernel.duration_us for kernel in kernels) - kernels[0].start_us for kernels in steps]
    span = max(*ends, 1e-3)
    hair = span * 0.0025
    categories = list(dict.fromkeys(kernel.category or "other" for kernel in everything))
    styles = looks(categories, CATEGORY_COLORS)
    for axes, kernels in zip(pairs, steps, strict=True):
        origin, by_row = kernels[0].start_us, _by_row(kernels, rows)
        _draw_rows(axes, by_row, origin, hair, styles)
        _mark_steps(axes, kernels, origin)
        axes.set_xlim(-0.005 * span, span * 1.01)
        axes.set_ylim(_height(by_row) - 0.4, -0.6)
        row_names(axes, (middle for middle, _, _ in _places(by_row)), by_row)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: human(time, "us") if time else "0"))
    notes = [note] if note else []
    if min(kernel.duration_us for kernel in everything) < hair:
        notes.append(f"kernels under {human(hair, 'us', 2)} are drawn that wide")
    swatches = [Patch(fc=styles[category].color, hatch=styles[category].hatch, ec="white", lw=0)
                for category in categories]  # fmt: skip
    legend(made, swatches, categories, "outside lower left", most=6, title="\n".join(notes) or None, title_fontsize=8,
           alignment="left")  # fmt: skip
    renderer = freeze_layout(made)
    for axes, kernels in zip(pairs, steps, strict=True):
        _name_wide_bars(axes, renderer, _by_row(kernels, rows), kernels[0].start_us, styles)


def _draw_rows(axes: Any, by_row: Mapping[str, Lanes], origin: float, hair: float, styles: Mapping[str, Look]) -> None:
    alike: dict[tuple[float, float, Look], list[tuple[float, float]]] = {}  # bars that are drawn at once
    for middle, height, kernel in _bars(by_row):
        bar = kernel.start_us - origin, max(kernel.duration_us, hair)
        alike.setdefault((middle, height, styles[kernel.category or "other"]), []).append(bar)
    for (middle, height, look), bars in alike.items():
        # A white edge tells neighbours apart, but would cover a bar as thin as a hair.
        edges = [0.6 if width > 2 * hair else 0.0 for _, width in bars]
        axes.broken_barh(bars, (middle - height / 2, height), fc=look.color, hatch=look.hatch, ec="white", lw=edges,
                         zorder=3)  # fmt: skip
    for middle, _, lanes in _places(by_row):
        times = [kernel.duration_us for lane in lanes for kernel in lane]
        plural = "launch" if len(times) == 1 else "launches"
        said = f"{len(times)} {plural}, {human(sum(times), 'us')}"
        if not all(itertools.starmap(_is_after, itertools.pairwise(lanes[-1]))):
            said += f",\nmore than {_MOST_LANES} at a time"
        axes.text(1.01, middle, said, va="center", fontsize=8.5, color=GREY, transform=axes.get_yaxis_transform())


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


def _name_wide_bars(
    axes: Any, renderer: Any, by_row: Mapping[str, Lanes], origin: float, styles: Mapping[str, Look]
) -> None:
    """Writes the op into every bar that has room for it."""
    before: dict[float, Any] = {}
    for row, _, kernel in _bars(by_row):
        is_apart = row not in before or _is_after(before[row], kernel)
        before[row] = kernel
        if not is_apart:
            continue
        begin = kernel.start_us - origin
        left, right = (axes.transData.transform((time, row))[0] for time in (begin, begin + kernel.duration_us))
        if right - left < 14:
            continue
        look = styles[kernel.category or "other"]
        box = {"fc": look.color, "lw": 0, "pad": 1} if look.hatch else None  # no lines behind the text
        text = axes.text(begin + kernel.duration_us / 2, row, kernel.op or kernel.name, color="white", fontsize=7,
                         ha="center", va="center", zorder=4, clip_on=True, bbox=box)  # fmt: skip
        if text.get_window_extent(renderer).width > right - left - 4:
            text.remove()
