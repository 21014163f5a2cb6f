"""Kernels over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from ..units import human
from .style import COLORS, GREY, figure, freeze_layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CATEGORY_COLORS = {
    "gemm": COLORS[0],
    "elementwise": COLORS[1],
    "softmax": COLORS[2],
    "layernorm": COLORS[3],
    "memory": COLORS[4],
    "other": "#8c8c8c",
}


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
