"""A figure in words, for readers who do not see it: the alternative text of its image in a notebook."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_TEXTS = 24  # names and values of a drawing without axes: more would be read aloud for minutes


class DescribedFigure(Figure):
    """A figure whose image in a notebook has an alternative text, which nbconvert takes into its pages."""

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        """No data, because the notebook makes the image; the text goes with it."""
        return {}, {"image/png": {"alt": described(self)}}


def described(figure: Figure) -> str:
    """What a figure shows: its titles, what its axes are, and the names of what is drawn.

    Examples
    --------
    >>> from rooflab.plots import plot_lines
    >>> described(plot_lines({"naive": {1: 2.0, 2: 4.0}}, "B", "bytes read", title="Traffic"))
    'Figure: Traffic. bytes read over tokens L.'
    """
    said = [figure.get_suptitle(), *(_axes(one) for one in figure.axes)]
    legends = [*figure.legends, *(one.get_legend() for one in figure.axes)]
    names = dict.fromkeys(text.get_text() for legend in legends if legend for text in legend.get_texts())
    if names:
        said.append(f"Drawn are {', '.join(names)}")
    sentences = [*dict.fromkeys(" ".join(text.split()).rstrip(".") for text in said if text.strip())]
    return f"Figure: {'. '.join(sentences)}." if sentences else "Figure."


def _axes(axes: Axes) -> str:
    title, x, y = axes.get_title() or axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()
    about = f"{y} over {x}" if x and y else x or y
    if not about:
        ticks = [text.get_text() for axis in (axes.xaxis, axes.yaxis) for text in axis.get_ticklabels()]
        names = [text for text in ticks if text[:1].isalpha()]
        texts = [text for text in (one.get_text() for one in axes.texts) if any(map(str.isalpha, text))]
        about = ", ".join(dict.fromkeys((names + texts)[:_TEXTS]))
    return ". ".join(text for text in (title, about) if text)
