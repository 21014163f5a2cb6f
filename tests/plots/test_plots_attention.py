"""What the figures of memory and of attention hold: levels, marks, labels. How they look was judged by eye."""

from types import SimpleNamespace

import numpy as np
import pytest
from plots.figures import saved, texts, timing

import rooflab as rl
from rooflab.plots import plot_flash_attention_improvement, plot_length_sweep, plot_memory_timeline

# --- memory over time ---


def recorded():
    a = rl.ones(100, 100)
    with rl.memory.record() as timeline:
        with rl.range("first"):
            b = rl.exp(a)
        with rl.range("second"):
            c = rl.tanh(b)
            del b
            d = rl.exp(c)
    assert c.nbytes == d.nbytes == 40000
    return timeline


def areas(figure):
    """label -> (lowest, highest) of what is filled."""
    found = {}
    for fill in figure.axes[0].collections:
        heights = np.concatenate([path.vertices[:, 1] for path in fill.get_paths()])
        found[fill.get_label()] = (heights.min(), heights.max())
    return found


def test_memory_is_stacked_to_the_peak(tmp_path):
    figure = plot_memory_timeline(recorded(), title="exp", note="a note")
    assert areas(figure) == {"exp, 40 kB": (0, 40000), "tanh, 40 kB": (0, 80000)}
    (level,) = (line for line in figure.axes[0].lines if line.get_drawstyle() == "steps-post")
    assert list(level.get_ydata()) == [0, 40000, 80000, 40000, 80000, 80000]
    seen = texts(figure)
    assert "peak 80 kB" in seen and "held at the peak, by op" in seen
    assert seen[-1].startswith("0 is the ") and seen[-1].endswith("held before\na note")
    saved(figure, tmp_path)


def test_memory_by_range():
    assert set(areas(plot_memory_timeline(recorded(), by="range"))) == {"first, 40 kB", "second, 40 kB"}


def test_memory_of_many_ops_has_one_grey_and_goes_below_zero(tmp_path):
    a = rl.ones(1000)
    old = rl.empty(1000)
    ops = [rl.exp, rl.tanh, rl.relu, rl.sqrt, rl.sin, rl.cos, rl.log, rl.abs]
    with rl.memory.record() as timeline:
        del old
        kept = [op(a) for op in ops]
    figure = plot_memory_timeline(timeline)
    found = areas(figure)
    assert len(found) == 7 and "2 others, 8 kB" in found
    assert min(low for low, _ in found.values()) == -4000
    assert len(kept) == 8
    saved(figure, tmp_path)


def test_memory_refuses():
    with rl.memory.record() as empty:
        pass
    with pytest.raises(ValueError, match="nothing was allocated"):
        plot_memory_timeline(empty)
    with pytest.raises(ValueError, match="by: expected 'op' or 'range'"):
        plot_memory_timeline(recorded(), by="device")


# --- attention ---


def bars(figure):
    return [(round(bar.get_x() + bar.get_width() / 2, 3), bar.get_y() + bar.get_height(), bar.get_hatch())
            for bar in figure.axes[0].patches]  # fmt: skip


def test_pairs_of_bars_with_their_ratio(tmp_path):
    figure = plot_flash_attention_improvement(
        {
            "standard": {256: timing(4.0), 512: timing(300), 1024: None},
            "flash": {1024: 9.0, 256: timing(2.0), 512: 1.5},
        },
        title="fp16",
        note="a note",
    )
    drawn = bars(figure)
    assert [(x, pytest.approx(height)) for x, height, hatch in drawn if not hatch] == [
        (-0.2, 4e-3), (0.8, 0.3), (0.2, 2e-3), (1.2, 1.5e-3), (2.2, 9e-3),
    ]  # fmt: skip
    assert [(x, height) for x, height, hatch in drawn if hatch] == [(1.8, pytest.approx(figure.axes[0].get_ylim()[1]))]
    seen = texts(figure)
    assert {"2x", "200x", "out of memory", "standard", "flash", "fp16"} <= set(seen)
    assert "above each pair: standard / flash\na note" in seen
    assert figure.axes[0].get_yscale() == "log"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["256", "512", "1024"]
    saved(figure, tmp_path)


def test_pairs_of_memory():
    use = SimpleNamespace(peak_bytes=8_000_000)
    figure = plot_flash_attention_improvement({"a": {256: use}, "b": {256: 1e6, 512: 2e6}}, "memory")
    assert [height for _, height, _ in bars(figure)] == [pytest.approx(8e6), pytest.approx(1e6), pytest.approx(2e6)]
    seen = texts(figure)
    assert "8x" in seen and any("not measured: a at 512" in text for text in seen)


def test_sweep_marks_what_ran_out_of_memory(tmp_path):
    figure = plot_length_sweep(
        {
            "naive": {256: timing(1.0), 1024: timing(16.0), 4096: None},
            "mine": {256: 0.5, 4096: None},
            "flash": {256: 0.1, 1024: 1.5, 4096: 25.0},
            "hopeless": {256: None},
        },
        title="forward",
    )
    axes = figure.axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["naive"].get_ydata()) == pytest.approx([1e-3, 16e-3])
    assert list(lines["naive: out of memory"].get_xdata()) == [4096]
    assert lines["naive: out of memory"].get_marker() == "X"
    heights = [lines[f"{name}: out of memory"].get_ydata()[0] for name in ("naive", "mine", "hopeless")]
    assert len(set(heights)) == 3 and min(heights) > 0.8
    assert "flash: out of memory" not in lines
    assert any("not measured: mine at 1024; hopeless at 1024, 4096" in text for text in texts(figure))
    assert axes.get_xscale() == axes.get_yscale() == "log"
    saved(figure, tmp_path)


@pytest.mark.parametrize("plot", [plot_flash_attention_improvement, plot_length_sweep])
def test_a_spread_is_named_where_there_is_one(plot):
    bare = {256: 1.0, 512: 3.0}
    assert plot({"a": bare, "b": bare}).axes[0].get_ylabel() == "latency"
    assert "p20 to p80" in plot({"a": bare, "b": {256: timing(1.0)}}).axes[0].get_ylabel()


@pytest.mark.parametrize(
    ("series", "quantity", "message"),
    [
        ({}, "latency", "series|table"),
        ({"a": {256: 1.0}, "b": {}}, "latency", "'b': expected at least one length"),
        ({"a": {256: None}, "b": {256: None}}, "latency", "every entry ran out of memory"),
        ({"a": {256: 0}, "b": {256: 1.0}}, "latency", "'a' at 256"),
        ({"a": {256: float("nan")}, "b": {256: 1.0}}, "memory", "'a' at 256"),
        ({"a": {256: "slow"}, "b": {256: 1.0}}, "latency", "'a' at 256"),
        ({"a": {-1: 1.0}, "b": {256: 1.0}}, "latency", "'a': length"),
        ({"a": {256: 1.0}, "b": {256: 1.0}}, "energy", "quantity"),
    ],
)
def test_attention_figures_refuse(series, quantity, message):
    for plot in (plot_flash_attention_improvement, plot_length_sweep):
        with pytest.raises(ValueError, match=message):
            plot(series, quantity)
    with pytest.raises(ValueError, match="two series"):
        plot_flash_attention_improvement({"a": {1: 1.0}})
