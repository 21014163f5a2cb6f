"""How every figure of rooflab looks, and where its labels go."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from ..units import binary, binary_power, human
from .description import DescribedFigure
from .titles import fit_titles

# Okabe and Ito, "Color Universal Design" (2008): these can be told apart with all common kinds of colour blindness.
# Their yellow is left out, because it is too pale on white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "*")
GREY = "#5f5f5f"

_STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 110,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.edgecolor": GREY,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.6,
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "text.parse_math": False,  # a name may have dollar signs
    "text.usetex": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 7,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
}


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """A new figure in rooflab's style, `width` x `height` inches, that no window and no notebook hook knows.

    pyplot makes it, so that a notebook knows how to show it, and forgets it at once, so that it is shown
    only where it is returned.
    """
    with mpl.rc_context(_STYLE):
        made = plt.figure(figsize=(width, height), layout="constrained", FigureClass=DescribedFigure)
        try:
            yield made
            fit_titles(made)
        finally:
            plt.close(made)


def bare(axes: Any, title: str | None) -> None:
    """Axes of a drawing: no ticks, no frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if title:
        axes.set_title(title)


def ticks_in_unit(axes: Any, unit: str) -> None:
    """On a logarithmic y axis whose limits are known, ticks with their unit: at 1, 2 and 5 where it is short."""
    low, high = axes.get_ylim()
    if high / low < 5:  # numbers that are alike: an axis without length, or without two ticks
        low, high = axes.set_ylim(math.sqrt(low * high / 5), math.sqrt(low * high * 5))
    subs = (1.0,) if high / low > 300 else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(10, subs=subs, numticks=16))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: human(value, unit)))


def in_bytes(is_binary: bool) -> Callable[[float], str]:
    """How a number of bytes is written: with binary prefixes (GiB) or decimal ones (GB)."""
    return binary if is_binary else functools.partial(human, unit="B")


def memory_axis(axis: Any, low: float, high: float, is_binary: bool) -> None:
    """On a linear axis from `low` to `high` bytes, ticks at round numbers; binary ones are all in one unit."""
    power = binary_power(max(-low, high))
    unit = 1024**power if is_binary else 1
    ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(low / unit, high / unit)
    axis.set_major_locator(FixedLocator([tick * unit for tick in map(float, ticks) if low <= tick * unit <= high]))
    write = functools.partial(binary, power=power) if is_binary else in_bytes(False)
    axis.set_major_formatter(FuncFormatter(lambda size, _: write(size) if size else "0"))


def caption(made: Figure, title: str | None, note: str | None = None) -> None:
    """What stands above and below all axes of a figure."""
    if title:
        made.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    if note:
        made.supxlabel(note, fontsize=8, color=GREY)


def freeze_layout(made: Figure) -> Any:
    """Lays the figure out for good, so that pixels can be compared from here on. Returns a renderer."""
    fit_titles(made)
    made.draw_without_rendering()
    made.set_layout_engine("none")
    return FigureCanvasAgg(made).get_renderer()  # whatever pyplot's backend is, Agg measures text


def place_labels(
    axes: Any,
    renderer: Any,
    labels: Sequence[tuple[float, float, str, str]],
    avoid: Sequence[Bbox],
    lines: Sequence[np.ndarray],
    fontsize: float = 8.5,
) -> list[int]:
    """Writes a label near each point where it hides nothing, with a thin leader where it had to move away.

    A label that would lie on another one wherever it stands is left out.

    Parameters
    ----------
    axes : Axes
        Its layout must be frozen.
    renderer : Renderer
        From `freeze_layout`.
    labels : sequence of (x, y, text, color)
        Positions in data coordinates.
    avoid : sequence of Bbox
        Boxes in pixels that labels must not cover: markers, other text.
    lines : sequence of (n, 2) arrays
        Lines in pixels that labels should not cross.
    fontsize : float
        Points.

    Returns
    -------
    list of int
        The places in `labels` of those that are written.
    """
    anchors = [axes.transData.transform((x, y)) for x, y, _, _ in labels]
    frame = axes.get_window_extent(renderer).padded(-3)
    taken, written = np.array([box.extents for box in avoid]).reshape(-1, 4), []
    samples = np.concatenate([_densify(line) for line in lines]) if lines else np.empty((0, 2))
    to_points = 72.0 / axes.figure.dpi
    for place, (anchor, (x, y, text, color)) in enumerate(zip(anchors, labels, strict=True)):
        note = axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=fontsize, color=color, zorder=6
        )
        text = _fitting(text, note.get_window_extent(renderer).width / frame.width)
        note.set_text(text)
        size = note.get_window_extent(renderer)
        best, best_cost = (0.0, 0.0), np.inf
        others = np.array([other for other in anchors if np.hypot(*(other - anchor)) > 1]).reshape(-1, 2)
        for radius, degrees in product((10, 18, 28, 42, 60, 82, 110, 145), _DIRECTIONS):
            if radius * 0.5 > best_cost:
                break  # no place this far away can be better
            angle = np.deg2rad(degrees)
            shift = np.array((np.cos(angle), np.sin(angle))) * radius
            # The label's nearest edge, not its centre, is what lies `radius` away.
            corner = anchor + shift + np.array((_edge(np.cos(angle)), _edge(np.sin(angle)))) * (size.width, size.height)
            box = np.array((*corner, corner[0] + size.width, corner[1] + size.height))
            cost = radius * 0.5 + _cost(box, frame, taken, samples) + 0.02 * (abs(degrees) % 90)
            # A reader takes a label for the nearest marker's.
            cost += 60.0 * int((_distances(box, others) < _distances(box, anchor) + 3).sum())
            if cost < best_cost:
                best, best_cost, best_box, best_radius = tuple(corner - anchor), cost, box, radius
        note.remove()
        if (_shared(best_box, taken[len(avoid) :]) > 0).any():
            continue
        written.append(place)
        axes.annotate(
            text,
            (x, y),
            xytext=(best[0] * to_points, best[1] * to_points),
            textcoords="offset points",
            fontsize=fontsize,
            color=color,
            zorder=6,
            arrowprops={
                "arrowstyle": "-",
                "color": color,
                "lw": 0.6,
                "alpha": 0.7,
                "shrinkA": 1,
                "shrinkB": 4,
            }
            if best_radius > 20
            else None,
        )
        taken = np.vstack([taken, best_box + np.array((-2, -2, 2, 2))])
    return written


def _fitting(text: str, share: float) -> str:
    """A text that takes this share of the frame's width: a long one in at most four lines, each of up to 0.4."""
    if share <= 0.6 or "\n" in text:
        return text
    return textwrap.fill(text, max(8, int(0.4 * len(text) / share)), max_lines=4, placeholder=" …")


# Straight up first, then down, then the sides; ties go to the earlier one.
_DIRECTIONS = (90, -90, 0, 180, 45, -45, 135, -135, 75, 105, -75, -105, 15, -15, 165, -165, 30, 60, -30, -60)


def _distances(box: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How far points are from a box (x0, y0, x1, y1)."""
    return np.hypot(*np.maximum(np.maximum(box[:2] - points, points - box[2:]), 0.0).T)


def _shared(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The areas that a box has in common with others."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    return np.maximum(sides, 0.0).prod(axis=1)


def _edge(direction: float) -> float:
    """Where along a label's side the anchor lies: -1 the far end, -0.5 the middle, 0 the near end."""
    return -0.5 + 0.5 * float(np.clip(direction * 1.6, -1, 1))


def _cost(box: np.ndarray, frame: Bbox, taken: np.ndarray, samples: np.ndarray) -> float:
    x0, y0, x1, y1 = box.tolist()
    outside = max(0.0, frame.x0 - x0, x1 - frame.x1) + max(0.0, frame.y0 - y0, y1 - frame.y1)
    shared = _shared(box, taken)
    cost = 60.0 * outside + 200.0 * int((shared > 0).sum()) + float(shared.sum())
    if len(samples):
        inside = (samples >= box[:2] - 1) & (samples <= box[2:] + 1)
        cost += 4.0 * int(inside.all(axis=1).sum())
    return cost


def _densify(line: np.ndarray, step: float = 4.0) -> np.ndarray:
    """Points every `step` pixels along a polyline."""
    parts = []
    for start, end in pairwise(line):
        count = max(2, int(np.hypot(*(end - start)) / step) + 1)
        parts.append(np.linspace(start, end, count))
    return np.concatenate(parts) if parts else np.asarray(line)
