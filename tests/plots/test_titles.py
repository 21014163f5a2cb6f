"""Titles and notes of any length and with any letters lie inside of their figure, and are written as they are."""

import doctest
import functools
import inspect

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from plots.figures import saved

from rooflab import plots

TITLE = "price $5 to $9_x of a_very_long_name_of_a_file_without_any_space_in_it.txt, " * 3 + r"$\bad{$"
NAMES = [name for name in plots.__all__ if "title" in inspect.signature(getattr(plots, name)).parameters]


def example_of(name, monkeypatch, **given):
    """The figure of a function's own example, with other arguments besides."""
    fn, drawn = getattr(plots, name), []

    @functools.wraps(fn)
    def draw(*arguments, **options):
        drawn.append(fn(*arguments, **{**options, **given}))
        return drawn[-1]

    monkeypatch.setattr(plots, name, draw)
    scope = {"np": pytest.importorskip("numpy")}
    for example in doctest.DocTestParser().get_examples(fn.__doc__):
        exec(example.source, scope)
    return drawn[-1]


@pytest.mark.slow(but_every=3)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_title_lies_inside_beside_the_legend_and_as_it_was_given(name, monkeypatch, tmp_path):
    has_note = "note" in inspect.signature(getattr(plots, name)).parameters
    figure = example_of(name, monkeypatch, title=TITLE, **({"note": TITLE} if has_note else {}))
    figure.draw_without_rendering()
    texts = figure.findobj(lambda one: isinstance(one, Text) and "price" in one.get_text())
    assert len(texts) == 1 + has_note
    renderer = FigureCanvasAgg(figure).get_renderer()
    for text in texts:
        assert "".join(TITLE.split()) in "".join(text.get_text().split())
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1
        others = [one for one in figure.legends if text is not one.get_title()]
        assert not any(box.overlaps(one.get_window_extent(renderer)) for one in others)
    assert all(axes.bbox.height > 20 for axes in figure.axes)
    saved(figure, tmp_path)
