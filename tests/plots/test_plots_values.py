"""What figures draw is what they were given: bands, bars, captions and units, read back from the figure."""

from types import SimpleNamespace

import numpy as np
import pytest
from machine.made_up import ceilings
from matplotlib.figure import Figure
from plots.figures import texts, timing

from rooflab.plots import plot_bars, plot_latency_vs_size, plot_roofline, plot_timeline
from rooflab.roofline import MachineSpec, Point


def band(figure: Figure, place: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest value of a band, by x."""
    corners = figure.axes[0].collections[place].get_paths()[0].vertices
    x = np.unique(corners[:, 0])
    return np.array([corners[corners[:, 0] == at, 1].min() for at in x]), np.array(
        [corners[corners[:, 0] == at, 1].max() for at in x]
    )


def test_latency_is_drawn_in_seconds_with_its_band():
    figure = plot_latency_vs_size({"gemm": {64: timing(2.0), 128: timing(10.0)}})
    axes = figure.axes[0]
    line = next(line for line in axes.lines if line.get_label() == "gemm")
    assert line.get_ydata() == pytest.approx([2e-3, 10e-3])
    low, high = band(figure)
    assert low == pytest.approx([0.9 * 2e-3, 0.9 * 10e-3]) and high == pytest.approx([1.3 * 2e-3, 1.3 * 10e-3])
    assert axes.get_ylabel() == "latency (median, band p20 to p80)"


def test_latency_bars_reach_from_p20_to_p80():
    figure = plot_latency_vs_size({"gemm": {64: timing(2.0)}})
    bars = next(c for c in figure.axes[0].collections if hasattr(c, "get_segments"))
    assert bars.get_segments()[0][:, 1] == pytest.approx([1.8e-3, 2.6e-3])


def test_roofline_captions_stand_on_their_sides_of_the_ridge():
    figure = plot_roofline("A6000", {"p": 1.0})
    sides = {text.get_text(): text for text in figure.axes[0].texts if text.get_text().endswith("-bound")}
    assert sides["memory-bound"].get_ha() == "right" and sides["compute-bound"].get_ha() == "left"
    assert sides["memory-bound"].xy[0] == sides["compute-bound"].xy[0] == pytest.approx(38.7 / 0.768)


def test_measured_roofs_are_solid_and_have_a_band_and_datasheets_are_dashed():
    ours = ceilings()
    figure = plot_roofline([ours, "A6000"], {"p": 1.0})
    roofs = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 3 and line.get_linestyle() != ":"]
    assert [line.get_linestyle() for line in roofs] == ["-", "--"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "measured" in labels[0] and "datasheet, dense" in labels[1] and "A6000" in labels[1]
    filled = [c for c in figure.axes[0].collections if len(c.get_paths()) and len(c.get_paths()[0].vertices) > 100]
    corners = filled[0].get_paths()[0].vertices
    top = ours.peak["float32"]
    right = corners[corners[:, 0] == corners[:, 0].max(), 1]
    assert (right.min(), right.max()) == pytest.approx((top.p20 * 1e12, top.p80 * 1e12))


def test_figures_without_a_source_are_no_datasheet():
    figure = plot_roofline(MachineSpec("a GPU", "gpu", 0.3, {"float16": 65.0}, None, None, {}), dtype="float16")
    assert "a GPU, as given: 300 GB/s, 65 TFLOP/s float16" in texts(figure)


def test_measured_points_have_bars_from_p20_to_p80():
    figure = plot_roofline(ceilings(), [Point("N", 4.0, 0.1, 0.09, 0.13)])
    bars = [c.get_segments()[0] for c in figure.axes[0].collections if hasattr(c, "get_segments") and c.get_segments()]
    ends = next(bar for bar in bars if len(bar) == 2)[:, 1]
    assert ends == pytest.approx([0.09e12, 0.13e12])


def test_bars_say_how_many_times_the_baseline():
    seen = texts(plot_bars({"a": 3 * 1.1, "b": 3.3, "c": 1.0, "d": 1.001}, "s"))
    assert seen.count("3.3 s   3.3x") == 2 and {"1 s   1x", "1.001 s   1.001x"} <= set(seen), "rounding is not shown"
    seen = " ".join(texts(plot_bars({"unfused": 72e6, "fused": 8e6}, "B")))
    assert "72 MB   9x" in seen and "8 MB   1x" in seen
    assert "   0.111x" in " ".join(texts(plot_bars({"unfused": 72e6, "fused": 8e6}, "B", baseline="unfused")))


def test_bars_spread_from_p20_to_p80():
    figure = plot_bars({"a": timing(10.0)}, "ms")
    segments = next(c for c in figure.axes[0].collections if hasattr(c, "get_segments")).get_segments()
    assert segments[0][:, 0] == pytest.approx([9.0, 13.0])


def test_a_timeline_begins_with_its_first_kernel_and_sums_each_row():
    records = [
        SimpleNamespace(name="k", op="k", range="", category="gemm", start_us=start, duration_us=us, step=0)
        for start, us in ((1000.0, 5.0), (1010.0, 7.0))
    ]
    figure = plot_timeline(records, rows="op")
    (row,) = (c for c in figure.axes[0].collections if len(c.get_paths()) == 2)
    lefts = [path.vertices[:, 0].min() for path in row.get_paths()]
    assert lefts == pytest.approx([0.0, 10.0])
    assert "2 launches, 12 µs" in texts(figure)
