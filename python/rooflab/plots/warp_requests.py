"""Figures of who accesses what: the threads of a warp on sectors of global memory and on banks of shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.patches import Rectangle

from .looks import wrapped
from .style import COLORS, GREY, bare, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..cuda import WarpRequest

_WORD, _LANES, _MOST = 4, 32, 12
_COLUMNS = {"global": 8, "shared": 32}  # words of a row: a sector, and all banks
_CELL_WIDTH = {"global": 0.3, "shared": 0.235}  # inches
_CELL_HEIGHT, _LABELS, _HEAD, _GAP, _WIDEST = 0.19, 0.62, 0.56, 0.25, 9.6
_TITLE = 1.5  # times as wide as the same text in a legend
_UNUSED = {"global": "#f3cfae", "shared": "#f0f0f0"}  # a sector loads all of its bytes, a bank only what is asked for


def plot_warp_requests(requests: Sequence[WarpRequest] | Mapping[str, WarpRequest], title: str | None = None) -> Figure:
    """Which lane of a warp accesses which word, a panel for each request, with the lane's number in the word.

    In global memory a row is a sector of 32 bytes that the request touches. Pale words are loaded and not used. In
    shared memory a row is 32 words, one of each bank. A bank that has to give several words is marked.

    Parameters
    ----------
    requests : sequence of WarpRequest, or mapping of str to WarpRequest
        ``launch.requests`` or some of them; a mapping gives each panel a name.
    title : str, optional
        Above the plot.

    Returns
    -------
    Figure
        A Matplotlib figure, which is not shown yet.

    Raises
    ------
    ValueError
        There is no request, or there are more than 12.

    Examples
    --------
    >>> from rooflab.plots import plot_warp_requests
    >>> from rooflab.cuda import WarpRequest
    >>> lanes = tuple(range(32))
    >>> request = WarpRequest(3, "global", "load", "x", 4, lanes, tuple(4 * lane for lane in lanes), 4)
    >>> figure = plot_warp_requests([request])
    """
    if not isinstance(requests, (Mapping, Sequence)):
        raise ValueError(f"[plots] requests: expected launch.requests or some of them, got {type(requests).__name__}")
    named = list(requests.items()) if isinstance(requests, Mapping) else [("", each) for each in requests]
    if not 1 <= len(named) <= _MOST:
        raise ValueError(f"[plots] requests: expected 1 to {_MOST} requests of a launch, got {len(named)}")
    for _, request in named:
        if not hasattr(request, "addresses"):
            raise ValueError(f"[plots] requests: expected a WarpRequest, got {request!r}")
    panels = [_Panel(str(name), request) for name, request in named]
    rows = _in_rows(panels)
    width = max(sum(panel.width for panel in row) for row in rows) + _GAP
    with figure(width, 1.0) as made:
        made.set_layout_engine("none")
        title = wrapped(title, (72 * width - 15) / _TITLE) if title else ""
        top = 0.16 + 0.19 * (title.count("\n") + 1) if title else 0.05
        height = top + sum(max(panel.height for panel in row) for row in rows)
        made.set_figheight(height)
        y = height - top
        for row in rows:
            x = 0.0
            for panel in row:
                left, upper = x + _LABELS, y - _HEAD
                inside = panel.width - _LABELS - _GAP, panel.cells_height
                box = (left / width, (upper - inside[1]) / height, inside[0] / width, inside[1] / height)
                panel.draw(made.add_axes(box))
                x += panel.width
            y -= max(panel.height for panel in row)
        if title:
            made.text(0.1 / width, 1 - 0.08 / height, title, fontsize=11, fontweight="bold", va="top")
    return made


class _Panel:
    """One request: its words, by row and column, and the lanes that access each."""

    def __init__(self, name: str, request: WarpRequest) -> None:
        self.request = request
        self.columns = _COLUMNS[request.memory]
        self.words: dict[tuple[int, int], list[int]] = {}
        for lane, address in zip(request.lanes, request.addresses, strict=True):
            for word in range(address // _WORD, (address + request.bytes - 1) // _WORD + 1):
                self.words.setdefault(divmod(word, self.columns), []).append(lane)
        self.rows = sorted({row for row, _ in self.words})
        what = f"{request.operation} of {request.array}" if request.array else f"{request.memory} {request.operation}"
        self.name = f"{name} (line {request.line}: {what})" if name else f"line {request.line}: {what}"
        self.cells_height = _CELL_HEIGHT * len(self.rows)
        self.width = max(_CELL_WIDTH[request.memory] * self.columns, 2.3) + _LABELS + _GAP
        self.height = self.cells_height + _HEAD + _GAP

    @property
    def summary(self) -> str:
        request = self.request
        many = f"{request.cost} {'sector' if request.memory == 'global' else 'wavefront'}{'s' * (request.cost > 1)}"
        if request.memory == "shared":
            lanes = f"{len(request.lanes)} lane{'s' * (len(request.lanes) > 1)}"
            return f"{lanes}, {request.bytes} bytes each: {many}"
        used = {byte for address in request.addresses for byte in range(address, address + request.bytes)}
        return f"{many}, {len(used) / (32 * request.cost):.1%} of the bytes used"

    def draw(self, axes: Any) -> None:
        bare(axes, None)
        axes.set_xlim(0, self.columns)
        axes.set_ylim(len(self.rows), 0)
        shades = mpl.colormaps["Blues"]
        crowded = self._crowded()
        for place, row in enumerate(self.rows):
            for column in range(self.columns):
                lanes = self.words.get((row, column), [])
                shade = shades(0.15 + 0.75 * lanes[0] / (_LANES - 1)) if lanes else _UNUSED[self.request.memory]
                edge = COLORS[1] if lanes and column in crowded else "white"
                axes.add_patch(Rectangle((column + 0.04, place + 0.06), 0.92, 0.88, facecolor=shade, edgecolor=edge,
                                         lw=1.1 if edge != "white" else 0.4))  # fmt: skip
                if lanes:
                    axes.text(column + 0.5, place + 0.53, _shown(lanes), ha="center", va="center",
                              fontsize=6.2 if len(_shown(lanes)) < 5 else 4.9,
                              color="white" if lanes[0] > 15 else "black")  # fmt: skip
            if self.request.memory == "global":
                axes.text(-0.15, place + 0.53, f"byte {32 * row}", ha="right", va="center", fontsize=6.5, color=GREY)
        if self.request.memory == "shared":
            for bank in (0, 8, 16, 24, 31):
                axes.text(bank + 0.5, -0.15, f"bank {bank}", ha="center", va="bottom", fontsize=6.2, color=GREY)
        above: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False}
        lift = 6 if self.request.memory == "global" else 14  # over the names of the banks
        axes.annotate(self.name, (0, 1), (0, lift + 11), fontsize=9, fontweight="bold", **above)
        axes.annotate(self.summary, (0, 1), (0, lift), fontsize=8, color=GREY, **above)

    def _crowded(self) -> set[int]:
        """Banks that have to give more than one word, or change one more than once. Lanes of 8 and 16 bytes go in
        groups, so these are not marked.
        """
        if self.request.memory == "global" or self.request.bytes > _WORD:
            return set()
        is_atomic = self.request.operation == "atomic"
        columns = [column for (_, column), lanes in self.words.items() for _ in range(len(lanes) if is_atomic else 1)]
        return {column for column in columns if columns.count(column) > 1}


def _in_rows(panels: Sequence[_Panel]) -> list[list[_Panel]]:
    rows: list[list[_Panel]] = [[]]
    for panel in panels:
        if rows[-1] and sum(each.width for each in rows[-1]) + panel.width > _WIDEST:
            rows.append([])
        rows[-1].append(panel)
    return rows


def _shown(lanes: Sequence[int]) -> str:
    """One or two lanes by their numbers, a stretch such as 0-15, or how many there are."""
    if len(lanes) <= 2:
        return ",".join(map(str, lanes))
    together = all(after == before + 1 for before, after in pairwise(lanes))
    return f"{lanes[0]}-{lanes[-1]}" if together else f"{len(lanes)} x"


__all__ = ["plot_warp_requests"]
