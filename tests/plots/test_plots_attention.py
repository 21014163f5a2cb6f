"""What the figures of memory and of attention hold: levels, marks, labels. How they look was judged by eye."""

from types import SimpleNamespace

import numpy as np
import pytest
from plots.figures import saved, texts, timing

import rooflab as rl
from rooflab.plots import (
    plot_flash_attention_improvement,
    plot_length_sweep,
    plot_memory_timeline,
    plot_memory_timelines,
)
from rooflab.units import human

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
    """label -> (lowest, highest) of each filled area."""
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


def test_memory_is_written_in_binary_units_where_that_is_wanted():
    figure = plot_memory_timeline(recorded(), binary=True)
    assert set(areas(figure)) == {"exp, 39.1 KiB", "tanh, 39.1 KiB"} and "peak 78.1 KiB" in texts(figure)
    figure.draw_without_rendering()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "0", "20 KiB", "40 KiB", "60 KiB", "80 KiB",
    ]  # fmt: skip
    assert "peak 78.1 KiB" in texts(plot_memory_timelines({"one": recorded()}, binary=True))


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


def test_memory_side_by_side_has_one_axis_and_one_key(tmp_path):
    a = rl.ones(100, 100)
    with rl.memory.record() as other:
        b = rl.sqrt(a)
    figure = plot_memory_timelines({"two": recorded(), "one": other}, title="both")
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim() and first.get_ylim()[1] > 80000
    colors = [
        {fill.get_label(): tuple(fill.get_facecolor()[0]) for fill in axes.collections} for axes in (first, second)
    ]
    assert colors[0] == colors[1] and len(set(colors[0].values())) == 3
    assert {"exp, left 40 kB, right 0", "tanh, left 40 kB, right 0", "sqrt, left 0, right 40 kB"} == set(colors[0])
    assert {"peak 80 kB", "peak 40 kB", "two", "one"} <= set(texts(figure))
    assert b.nbytes == 40000
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="at least one"):
        plot_memory_timelines({})


def test_memory_side_by_side_says_what_each_began_with_and_who_made_what_no_op_did():
    timelines, kept = {}, []
    for name in ("one", "two"):
        with rl.memory.record() as timelines[name]:
            kept.append(rl.tensor(np.zeros(1000, np.float32)))
        kept.append(rl.zeros(10_000_000))
    figure = plot_memory_timelines(timelines)
    assert set(areas(figure)) == {"made by you, left 4 kB, right 4 kB"}
    one, two = (human(timeline.resident_bytes, "B") for timeline in timelines.values())
    assert one != two and texts(figure)[-1] == f"0 is what was held before: left {one}, right {two}"


def test_what_is_predicted_is_joined_to_the_measured_point_beside_it():
    guesses = {4096: 40.0, 128: 1.0, 2048: 20.0, 512: 5.0, 256: 2.0}
    figure = plot_length_sweep({"a": {1024: 10.0, 384: 4.0, 64: None}}, predicted={"a": {**guesses, 64: 0.5}})
    dashed = [line for line in figure.axes[0].lines if line.get_zorder() == 1.5]
    assert [list(line.get_xdata()) for line in dashed] == [[64, 128, 256, 384], [384, 512], [1024, 2048, 4096]]
    assert all((np.diff(line.get_ydata()) > 0).all() for line in dashed)


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        ({256: None}, "'a' at 256: expected a value that is missing, got None"),
        ({512: 2.0}, "'a' at 512: expected a value that is missing, got one that was measured"),
        ({256: -1.0}, "'a' at 256: expected finite numbers > 0, got -1.0"),
        ({256: 10**400}, f"'a' at 256: expected a number, got {10**400}"),
    ],
)
def test_what_is_no_prediction_is_refused(predicted, message):
    with pytest.raises(ValueError) as error:
        plot_length_sweep({"a": {512: 1.0}}, predicted={"a": predicted})
    assert str(error.value) == f"[plots] predicted {message}"


def test_memory_refuses():
    with rl.memory.record() as empty:
        pass
    with pytest.raises(ValueError, match="nothing was allocated"):
        plot_memory_timeline(empty)
    with pytest.raises(ValueError, match="by: expected 'op' or 'range'"):
        plot_memory_timeline(recorded(), by="device")


# --- attention ---


def points(figure, marker):
    """(place, value) of every marker of one kind."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in lines for x, y in line.get_xydata()]


def test_pairs_of_points_with_their_ratio(tmp_path):
    figure = plot_flash_attention_improvement(
        {
            "standard": {256: timing(4.0), 512: timing(300), 1024: None},
            "flash": {1024: 9.0, 256: timing(2.0), 512: 1.5},
        },
        title="fp16",
        note="a note",
    )
    assert points(figure, "o") == [(0, pytest.approx(4e-3)), (1, pytest.approx(0.3))]
    assert points(figure, "s") == [(0, pytest.approx(2e-3)), (1, pytest.approx(1.5e-3)), (2, pytest.approx(9e-3))]
    ((place, height),) = points(figure, "X")
    assert place == 2 and height > 0.9, "near the top of the axes"
    assert not figure.axes[0].patches, "no bars on a logarithmic axis"
    seen = texts(figure)
    assert {"2x", "200x", "out of\nmemory", "standard", "flash", "fp16"} <= set(seen)
    assert "beside each pair: standard / flash\na note" in seen
    assert figure.axes[0].get_yscale() == "log"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["256", "512", "1024"]
    saved(figure, tmp_path)


def test_pairs_of_memory():
    use = SimpleNamespace(peak_bytes=8_000_000)
    figure = plot_flash_attention_improvement({"a": {256: use}, "b": {256: 1e6, 512: 2e6}}, "memory")
    assert points(figure, "o") == [(0, pytest.approx(8e6))]
    assert points(figure, "s") == [(0, pytest.approx(1e6)), (1, pytest.approx(2e6))]
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


def test_sweep_draws_what_it_predicts_hollow(tmp_path):
    figure = plot_length_sweep(
        {"naive": {256: 1.0, 512: 4.0}, "flash": {256: 0.5, 512: None}},
        predicted={"naive": {1024: 16.0, 2048: 64.0}, "flash": {}},
    )
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines["naive"].get_xdata()) == [256, 512]
    guessed = lines["naive: predicted"]
    assert list(guessed.get_xdata()) == [1024, 2048] and list(guessed.get_ydata()) == pytest.approx([0.016, 0.064])
    assert guessed.get_markerfacecolor() == "white" and lines["naive"].get_markerfacecolor() != "white"
    assert "flash: predicted" not in lines
    assert any("not measured: flash at 1024, 2048" in text for text in texts(figure))
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="expected names of series, got 'other'"):
        plot_length_sweep({"naive": {256: 1.0}}, predicted={"other": {512: 1.0}})


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
