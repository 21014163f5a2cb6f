"""Titles and notes that lie inside of their figure: long ones have several lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHORT = 0.5  # of the width: a text that takes less has room wherever legends lie
_GAP = 6.0  # pixels to what stands at the right
_LEAST = 8  # letters a line


def fit_titles(made: Figure) -> None:
    """Break titles and notes that have no room into lines, in a figure whose layout is not frozen.

    A line reaches to the figure's edge, or to a legend or another title beside it. The figure becomes higher by the
    lines that are added.
    """
    children = [(axes, one) for axes in made.axes for one in axes.get_children() if isinstance(one, Text)]
    titles = [one for axes, one in children if one.get_text() and one not in axes.texts]
    texts = [*titles, *(one for one in made.texts if one.get_text())]
    renderer = FigureCanvasAgg(made).get_renderer()
    is_short = [one.get_window_extent(renderer).width <= _SHORT * (one.axes or made).bbox.width for one in texts]
    if all(is_short) or not isinstance(made.get_layout_engine(), ConstrainedLayoutEngine):
        return
    given = [(one.get_text(), one.get_window_extent(renderer).height) for one in texts]
    height = made.get_figheight()
    # A layout has no room for axes whose title reaches far out of the figure.
    _break_all(made, texts, given, [made.bbox.width - 2 * _GAP] * len(texts), renderer)
    made.draw_without_rendering()
    beside = [one.get_window_extent(renderer) for one in (*made.legends, *titles)]
    rooms = []
    for one in texts:
        box = one.get_window_extent(renderer)
        rooms.append(made.bbox.width - 2 * _GAP)
        if one.get_horizontalalignment() == "left":
            ends = [other.x0 for other in beside if other.x0 > box.x0 and other.y0 < box.y1 and box.y0 < other.y1]
            rooms[-1] = min([made.bbox.x1, *ends]) - _GAP - box.x0
    made.set_figheight(height)
    _break_all(made, texts, given, rooms, renderer)


def _break_all(
    made: Figure, texts: Sequence[Text], given: Sequence[tuple[str, float]], rooms: Sequence[float], renderer: Any
) -> None:
    """Break texts into lines that have room, and make the figure higher by the lines that are added."""
    added: dict[float, float] = {}  # of all titles in a row, the one with most lines counts
    for one, (text, height), room in zip(texts, given, rooms, strict=True):
        _break(one, text, room, renderer)
        spec = one.axes.get_subplotspec() if isinstance(one.axes, Axes) else None
        row = spec.rowspan.start if spec else -one.get_position()[1] - 1
        added[row] = max(added.get(row, 0.0), one.get_window_extent(renderer).height - height)
    made.set_figheight(made.get_figheight() + sum(added.values()) / made.dpi)


def _break(one: Text, text: str, room: float, renderer: Any) -> None:
    """Write a text, in lines of at most so many pixels."""
    one.set_text(text)
    width, lines = one.get_window_extent(renderer).width, text.split("\n")
    if width <= room:
        return
    longest = max(map(len, lines))
    for letters in range(max(_LEAST, int(1.2 * longest * room / width)), _LEAST - 1, -1):
        one.set_text("\n".join(textwrap.fill(line, letters) for line in lines))
        if one.get_window_extent(renderer).width <= room:
            return
