"""How series look so that no two are alike, legends that fit into their figure, and names and sizes beside axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.textpath import TextPath
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ..units import rounded
from .style import COLORS, MARKERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES: tuple[Any, ...] = (
    "-", (0, (5, 2.5)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)), (0, (11, 3)), (0, (1, 4)),
)  # fmt: skip
_HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "---")
_TICKS = 10  # of a size axis, at most
_FONT, _LINE = 8.5, 0.165  # of legends: points, and inches a line
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Look:
    """How a series looks: lines by colour and dash, points by colour and marker, areas by colour and hatch."""

    color: str
    marker: str
    dash: Any
    hatch: str

    @property
    def cross(self) -> Any:
        """The marker of what could not be measured, which has more arms where a colour comes again."""
        turn = DASHES.index(self.dash)
        return (4 + turn, 2, 45) if turn else "X"


# Colours change first: seven series have a colour each, solid lines and plain areas.
_LOOKS = [
    Look(color, MARKERS[(place + turn) % len(MARKERS)], dash, hatch)
    for turn, (dash, hatch) in enumerate(zip(DASHES, _HATCHES, strict=True))
    for place, color in enumerate(COLORS)
]


def looks(names: Iterable[str], fixed: Mapping[str, str] | None = None) -> dict[str, Look]:
    """How each of some series looks; no two of them are alike.

    Parameters
    ----------
    names : iterable of str
        The series, at most 49 that are not `fixed`.
    fixed : mapping of str to str, optional
        Colours of series that have one in other figures; no other series is plain in such a colour.

    Returns
    -------
    dict of str to Look

    Raises
    ------
    ValueError
        If there are more series than looks.

    Examples
    --------
    >>> [look.color for look in looks(["a", "b"], {"b": COLORS[0]}).values()]
    ['#D55E00', '#0072B2']
    """
    known = {name: Look(color, "o", "-", "") for name, color in (fixed or {}).items()}
    free = [look for look in _LOOKS if look.hatch or look.color not in (fixed or {}).values()]
    names = list(dict.fromkeys(names))
    others = [name for name in names if name not in known]
    if len(others) > len(free):
        raise ValueError(f"[plots] at most {len(free)} series can be told apart, got {len(others)}; draw fewer of them")
    known |= dict(zip(others, free, strict=False))
    return {name: known[name] for name in names}


def legend(made: Figure, handles: Sequence[Any], names: Sequence[str], loc: Any, most: int = 8, **options: Any) -> Any:
    """A legend outside of the axes: long names have several lines, and there are as many columns as fit, up to `most`.

    A figure whose legend has many lines becomes higher.
    """
    at_side = loc.startswith("outside right")
    width = 72 * made.get_figwidth() - 10
    lines = 0  # of the title
    if title := options.get("title"):
        title = "\n".join(wrapped(line, (0.4 if at_side else 1.0) * width) for line in title.split("\n"))
        options["title"], lines = title, title.count("\n") + 1
    handle = 5 * _FONT  # with the space around it
    texts = [wrapped(name, (0.4 if at_side else 1.0) * width - handle) for name in names]
    widest = max(map(_width, texts), default=0.0)
    columns = 1 if at_side else max(1, min(len(texts), most, int((width + 2 * _FONT) / (widest + handle))))
    lines += math.ceil(len(texts) / columns) * max((text.count("\n") + 1 for text in texts), default=1)
    inches = _LINE * lines
    height = made.get_figheight()
    made.set_figheight(max(height, inches + 0.5) if at_side else height + max(0.0, inches - 3 * _LINE))
    return made.legend(handles, texts, loc=loc, ncols=columns, **options)


def row_names(axes: Any, places: Iterable[float], names: Iterable[str]) -> None:
    """Names at the left of rows. Long ones have several lines, so that there is room for the rows."""
    axes.set_yticks(list(places), [wrapped(name, 190.0) for name in names])


def size_axis(axes: Any, sizes: Iterable[float], inches: float) -> None:
    """On a logarithmic x axis of so many inches, ticks at those of `sizes` that have room, all written exactly."""
    ticks = sorted(sizes)
    write = _powers_of_two if _are_large_powers(ticks) else exact
    least = (max(_width(write(tick)) for tick in ticks) + 8) / (72 * inches)
    if len(ticks) > _TICKS:
        least = max(least, 1 / _TICKS)
    kept = ticks[:1]
    for tick in ticks[1:]:
        if math.log(tick / kept[-1]) >= least * math.log(ticks[-1] / ticks[0]):
            kept.append(tick)
    axes.xaxis.set_major_locator(FixedLocator(kept))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: write(size)))


def _are_large_powers(sizes: Sequence[float]) -> bool:
    return max(sizes) >= 2**17 and all(math.frexp(size)[0] == 0.5 for size in sizes)


def _powers_of_two(size: float) -> str:
    return "2" + str(math.frexp(size)[1] - 1).translate(_RAISED)


def exact(size: float) -> str:
    """A size as it is, with commas between thousands from 10,000 on."""
    return rounded(size, 3 if size == int(size) else 12)


def bar_axis(axes: Any, ends: Sequence[float], texts: Sequence[str], write: Callable[[float], str]) -> None:
    """From 0 on, an x axis of bars: room for a text behind each, and no more ticks than have room."""
    points = 72 * axes.figure.get_figwidth() - max(_width(name.get_text()) for name in axes.get_yticklabels()) - 40
    beside = [min(0.75, (1.15 * _width(text) + 12) / points) for text in texts]  # of the axis
    longest = max(ends)
    high = max(1.1 * longest, *(end / (1 - share) for end, share in zip(ends, beside, strict=True)))
    axes.set_xlim(0, high)
    ticks = int(points / (1.15 * _width(write(0.9 * high)) + 16))
    axes.xaxis.set_major_locator(MaxNLocator(max(1, min(6, ticks)), steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value) if value else "0"))
    for row, (end, text) in enumerate(zip(ends, texts, strict=True)):
        axes.annotate(text, (end, row), (5, 0), textcoords="offset points", va="center")


def _width(text: str) -> float:
    """Points; of the longest line. A path of no letters has no extents."""
    lines = [line for line in text.split("\n") if line.strip()]
    return max((float(TextPath((0, 0), line, size=_FONT).get_extents().width) for line in lines), default=0.0)


def wrapped(text: str, width: float) -> str:
    """A text in lines of about so many points."""
    there = _width(text)
    return text if there <= width or "\n" in text else textwrap.fill(text, max(8, int(len(text) * width / there)))
