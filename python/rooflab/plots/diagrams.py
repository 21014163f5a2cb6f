"""Drawings that explain: levels of memory, tiles of attention, the online softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from .style import COLORS, GREY, bare, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of an A100 SXM 80GB, from NVIDIA's architecture whitepaper: 108 SMs at 1.41 GHz, each with 256 KiB of registers and
# 192 KiB of L1 and shared memory at 128 byte/clock. The link to the host is PCIe 4.0 x16, one direction.
_A100 = (
    ("registers", "28.3 MB", "", "one thread"),
    ("shared memory, L1", "21.2 MB", "19.5 TB/s", "one block"),
    ("L2 cache", "40 MB", "7.2 TB/s", "the whole GPU"),
    ("GPU memory (HBM)", "80 GB", "2.04 TB/s", "the whole GPU"),
    ("host memory", "1 TB", "0.03 TB/s", "CPU and GPU"),
)
_ON_CHIP = 3
_COMPUTED, _MASKED, _SKIPPED = COLORS[5], COLORS[4], "#f0f0f0"
_MOST_TILES = 4096


def plot_memory_hierarchy(title: str | None = "Levels of memory of an A100: the further away, the slower") -> Figure:
    """The levels of memory of a GPU as a pyramid, with their sizes and bandwidths.

    Parameters
    ----------
    title : str, optional
        Above the drawing.

    Returns
    -------
    Figure
        The figures are those of an NVIDIA A100 SXM 80GB, from its architecture whitepaper. All SMs together.

    Examples
    --------
    >>> from rooflab.plots import plot_memory_hierarchy
    >>> figure = plot_memory_hierarchy()
    """
    with figure(8.0, 3.6) as made:
        axes = made.add_subplot()
        for row, (name, size, speed, owner) in enumerate(_A100):
            half, y = 0.16 + 0.085 * row, -row
            color = COLORS[5] if row < _ON_CHIP else COLORS[0]
            box = Rectangle((0.5 - half, y - 0.42), 2 * half, 0.84, fc=color, ec="white", alpha=0.35 + 0.1 * row)
            axes.add_patch(box)
            axes.text(0.5, y, f"{name}\n{size}", ha="center", va="center", fontsize=9, linespacing=1.15)
            axes.text(1.06, y, speed, ha="left", va="center", fontweight="bold")
            axes.text(-0.06, y, owner, ha="right", va="center", color=GREY, fontsize=8.5)
        edge = -_ON_CHIP + 0.5
        axes.plot([-0.3, 1.55], [edge, edge], color=GREY, ls="--", lw=1)
        axes.text(1.55, edge + 0.06, "on the chip", ha="right", va="bottom", color=GREY, fontsize=8.5, style="italic")
        axes.text(1.55, edge - 0.08, "off the chip", ha="right", va="top", color=GREY, fontsize=8.5, style="italic")
        axes.text(-0.06, 0.75, "shared by", ha="right", va="center", color=GREY, fontsize=8.5)
        axes.text(1.06, 0.75, "bandwidth", ha="left", va="center", color=GREY, fontsize=8.5)
        axes.set_xlim(-0.4, 1.58)
        axes.set_ylim(-len(_A100) + 0.45, 1.0)
        bare(axes, title)
    return made


def plot_attention_tiles(
    L_q: int, L_kv: int, tile_q: int, tile_kv: int, is_causal: bool = False, title: str | None = None
) -> Figure:
    """The matrix of scores cut into tiles: which are computed, masked, or skipped, and the order of the loop.

    Parameters
    ----------
    L_q, L_kv : int
        Queries and keys.
    tile_q, tile_kv : int
        Queries and keys of a tile; the last ones may be smaller.
    is_causal : bool
        Whether query i sees only the keys j <= i + L_kv - L_q.
    title : str, optional
        Above the drawing.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If a number is not positive, there are more than 4096 tiles, or L_q > L_kv when causal.

    Examples
    --------
    >>> from rooflab.plots import plot_attention_tiles
    >>> figure = plot_attention_tiles(256, 256, 64, 64, is_causal=True)
    """
    for name, number in (("L_q", L_q), ("L_kv", L_kv), ("tile_q", tile_q), ("tile_kv", tile_kv)):
        if number < 1:
            raise ValueError(f"[plots] {name}: expected at least 1, got {number}")
    if math.ceil(L_q / tile_q) * math.ceil(L_kv / tile_kv) > _MOST_TILES:
        raise ValueError(f"[plots] tiles: expected at most {_MOST_TILES}, got smaller ones")
    if is_causal and L_q > L_kv:
        raise ValueError(f"[plots] causal: expected L_q <= L_kv, got {L_q} and {L_kv}")
    shift = L_kv - L_q
    kinds: dict[str, str] = {}
    with figure(6.6, 4.4) as made:
        axes = made.add_subplot()
        for i in range(0, L_q, tile_q):
            rows = min(tile_q, L_q - i)
            for j in range(0, L_kv, tile_kv):
                columns = min(tile_kv, L_kv - j)
                kind, color = "computed", _COMPUTED
                if is_causal and j > i + rows - 1 + shift:
                    kind, color = "skipped", _SKIPPED
                elif is_causal and j + columns - 1 > i + shift:
                    kind, color = "computed, with a mask", _MASKED
                kinds[kind] = color
                axes.add_patch(Rectangle((j, i), columns, rows, fc=color, ec="white", lw=1.5))
        if is_causal:
            steps = np.arange(L_q + 1)
            axes.step(np.clip(steps + shift, 0, L_kv), steps, color="black", lw=1.2, where="post")
        first = min(tile_q, L_q)
        reach = min(L_kv, first + shift) if is_causal else L_kv
        axes.add_patch(FancyArrowPatch((0.02 * L_kv, first / 2), (max(reach * 0.97, 0.1 * L_kv), first / 2),
                                       arrowstyle="-|>", mutation_scale=14, color="black", lw=1.6))  # fmt: skip
        gap = 0.03 * max(L_q, L_kv)
        axes.add_patch(Rectangle((-2.4 * gap, 0), 1.6 * gap, first, fc=COLORS[1], clip_on=False))
        axes.text(-3 * gap, first / 2, "a tile of Q,\nm, l and O", ha="right", va="center", color=COLORS[1], fontsize=9)
        axes.add_patch(Rectangle((0, -2.4 * gap), min(tile_kv, L_kv), 1.6 * gap, fc=COLORS[2], clip_on=False))
        axes.text(min(tile_kv, L_kv) / 2, -3 * gap, "a tile of K and V", ha="center", va="bottom", color=COLORS[2],
                  fontsize=9)  # fmt: skip
        axes.set_xlim(-0.32 * L_kv, L_kv * 1.01)
        axes.set_ylim(L_q * 1.01, -7 * gap)
        axes.set_aspect("equal")
        axes.text(L_kv, L_q + 0.4 * gap, f"{L_kv} keys", ha="right", va="top", color=GREY, fontsize=8.5)
        axes.text(-0.4 * gap, L_q, f"{L_q} queries", ha="right", va="bottom", color=GREY, fontsize=8.5, rotation=90)
        if len(kinds) > 1:
            swatches = [Patch(fc=color, ec=GREY, lw=0.5, label=kind) for kind, color in kinds.items()]
            made.legend(handles=swatches, loc="outside lower center", ncols=3, title="scores of a tile")
        bare(axes, title or f"Scores in tiles of {tile_q} x {tile_kv}" + ", causal" * is_causal)
    return made


def plot_online_softmax(values: Sequence[float], chunk: int, title: str | None = None) -> Figure:
    """How the online softmax goes through a row: the running maximum, and the sum relative to it.

    Parameters
    ----------
    values : sequence of float
        A row of scores.
    chunk : int
        Scores taken at a time.
    title : str, optional
        Above the drawing.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        If there is no finite value, or `chunk` is not positive.

    Examples
    --------
    >>> from rooflab.plots import plot_online_softmax
    >>> figure = plot_online_softmax([1.0, 2.0, 0.5, 3.0], chunk=2)
    """
    row = np.asarray(values, dtype=float)
    if row.ndim != 1 or not len(row) or not np.isfinite(row).all():
        raise ValueError("[plots] values: expected a row of finite numbers")
    if chunk < 1:
        raise ValueError(f"[plots] chunk: expected at least 1, got {chunk}")
    starts = range(0, len(row), chunk)
    with figure(7.6, 4.6) as made:
        top, bottom = made.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        top.bar(np.arange(len(row)), row, width=0.7, color=COLORS[5], label="scores x")
        m, total = -np.inf, 0.0
        for number, start in enumerate(starts):
            part = row[start : start + chunk]
            new = max(m, part.max())
            kept, added = total * math.exp(m - new), float(np.exp(part - new).sum())
            left, right, middle = start - 0.5, start + len(part) - 0.5, start + (len(part) - 1) / 2
            top.plot([left, right], [new, new], color=COLORS[1], lw=2.4, label=None if number else "maximum so far, m")
            bottom.bar(middle, kept, width=0.5, color=COLORS[0], label=None if number else "sum before, rescaled")
            bottom.bar(middle, added, 0.5, kept, color=COLORS[2], label=None if number else "exponentials of the chunk")
            if number:
                factor = f"l times {math.exp(m - new):.2g}" if new > m else "l times 1"
                bottom.annotate(factor, (middle, kept + added), (0, 3), textcoords="offset points", ha="center",
                                fontsize=8.5, color=GREY)  # fmt: skip
            if left > 0:
                for axes in (top, bottom):
                    axes.axvline(left, color=GREY, lw=0.8, ls=":")
            m, total = new, kept + added
        top.set_ylabel("score")
        bottom.set_ylabel("sum l, relative to m")
        bottom.set_ylim(0, bottom.get_ylim()[1] * 1.2)
        bottom.set_xticks([start + (min(chunk, len(row) - start) - 1) / 2 for start in starts],
                          [f"chunk {number + 1}" for number in range(len(starts))])  # fmt: skip
        for axes in (top, bottom):
            axes.grid(axis="x", visible=False)
        top.set_title(title or "One pass over a row: when the maximum grows, the old sum is rescaled")
        made.legend(loc="outside lower center", ncols=4)
    return made
