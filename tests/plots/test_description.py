"""A figure's image in a notebook has an alternative text that says what is drawn."""

import base64

import pytest
from plots.figures import timing

from rooflab.plots import plot_attention_tiles, plot_bars, plot_latency_vs_size, plot_memory_hierarchy
from rooflab.plots.description import described


def latencies():
    return plot_latency_vs_size({"gemm": {64: timing(2.0)}, "gemv": {64: timing(1.0)}}, title="Times of products")


def test_titles_axes_and_series_are_named():
    said = described(latencies())
    assert said.startswith("Figure: Times of products. latency (median, band p20 to p80) over ")
    assert "Drawn are " in said and "gemm" in said and "gemv" in said


def test_a_drawing_without_axes_is_told_by_its_texts():
    said = described(plot_memory_hierarchy("Levels"))
    assert said.startswith("Figure: Levels. ") and "HBM" in said
    assert "keys" in described(plot_attention_tiles(4, 4, 2, 2))


def test_bars_are_told_with_their_names_and_values():
    said = described(plot_bars({"naive": 4.0, "tiled": 2.0}, "ms", title="Products"))
    assert said == "Figure: Products. naive, tiled, 4 ms 2x, 2 ms 1x."


def test_a_figure_without_any_text_is_one_word():
    figure = latencies()
    figure.clear()
    assert described(figure) == "Figure."


def test_a_notebook_keeps_the_text_beside_the_image():
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.pylabtools import select_figure_formats
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    try:
        select_figure_formats(shell, {"png"})
        figure = latencies()
        data, about = shell.display_formatter.format(figure)
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
        assert about["image/png"] == {"alt": described(figure)}
    finally:
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()
