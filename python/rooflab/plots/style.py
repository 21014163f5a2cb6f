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
) -> None:
    """Writes a label near each point where it hides nothing, with a thin leader where it had to move away.

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
    """
    anchors = [axes.transData.transform((x, y)) for x, y, _, _ in labels]
    frame = axes.get_window_extent(renderer).padded(-3)
    taken = list(avoid)
    samples = np.concatenate([_densify(line) for line in lines]) if lines else np.empty((0, 2))
    to_points = 72.0 / axes.figure.dpi
    for anchor, (x, y, text, color) in zip(anchors, labels, strict=True):
        note = axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=fontsize, color=color, zorder=6
        )
        text = _fitting(text, note.get_window_extent(renderer).width / frame.width)
        note.set_text(text)
        size = note.get_window_extent(renderer)
        best, best_cost = (0.0, 0.0), np.inf
        others = [other for other in anchors if np.hypot(*(other - anchor)) > 1]
        for radius, degrees in product((10, 18, 28, 42, 60, 82, 110, 145), _DIRECTIONS):
            if radius * 0.5 > best_cost:
                break  # no place this far away can be better
            angle = np.deg2rad(degrees)
            shift = np.array((np.cos(angle), np.sin(angle))) * radius
            # The label's nearest edge, not its centre, is what lies `radius` away.
            corner = anchor + shift + np.array((_edge(np.cos(angle)), _edge(np.sin(angle)))) * (size.width, size.height)
            box = Bbox.from_bounds(corner[0], corner[1], size.width, size.height)
            cost = radius * 0.5 + _cost(box, frame, taken, samples) + 0.02 * (abs(degrees) % 90)
            # A reader takes a label for the nearest marker's.
            cost += sum(60.0 for other in others if _distance(box, other) < _distance(box, anchor) + 3)
            if cost < best_cost:
                best, best_cost, best_box, best_radius = tuple(corner - anchor), cost, box, radius
        note.remove()
        note = axes.annotate(
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
        taken.append(best_box.padded(2))


def _fitting(text: str, share: float) -> str:
    """A text that takes this share of the frame's width: a long one in at most four lines, each of up to 0.4."""
    if share <= 0.6 or "\n" in text:
        return text
    return textwrap.fill(text, max(8, int(0.4 * len(text) / share)), max_lines=4, placeholder=" …")


# Straight up first, then down, then the sides; ties go to the earlier one.
_DIRECTIONS = (90, -90, 0, 180, 45, -45, 135, -135, 75, 105, -75, -105, 15, -15, 165, -165, 30, 60, -30, -60)


def _distance(box: Bbox, point: np.ndarray) -> float:
    across = max(box.x0 - point[0], 0.0, point[0] - box.x1)
    return float(np.hypot(across, max(box.y0 - point[1], 0.0, point[1] - box.y1)))


def _edge(direction: float) -> float:
    """Where along a label's side the anchor lies: -1 the far end, -0.5 the middle, 0 the near end."""
    return -0.5 + 0.5 * float(np.clip(direction * 1.6, -1, 1))


def _cost(box: Bbox, frame: Bbox, taken: Sequence[Bbox], samples: np.ndarray) -> float:
    outside = max(0.0, frame.x0 - box.x0, box.x1 - frame.x1) + max(0.0, frame.y0 - box.y0, box.y1 - frame.y1)
    cost = 60.0 * outside
    for other in taken:
        width = min(box.x1, other.x1) - max(box.x0, other.x0)
        height = min(box.y1, other.y1) - max(box.y0, other.y0)
        if width > 0 and height > 0:
            cost += 200.0 + width * height
    if len(samples):
        inside = (samples >= (box.x0 - 1, box.y0 - 1)) & (samples <= (box.x1 + 1, box.y1 + 1))
        cost += 4.0 * int(inside.all(axis=1).sum())
    return cost


def _densify(line: np.ndarray, step: float = 4.0) -> np.ndarray:
    """Points every `step` pixels along a polyline."""
    parts = []
    for start, end in pairwise(line):
        count = max(2, int(np.hypot(*(end - start)) / step) + 1)
        parts.append(np.linspace(start, end, count))
    return np.concatenate(parts) if parts else np.asarray(line)
