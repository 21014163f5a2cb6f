"""Figures of a model's steps draw what they were given, out-of-memory rows too."""

import dataclasses

import pytest
from plots.figures import saved, texts

import rooflab as rl
from rooflab.benchmark.lm import OUT_OF_MEMORY, Case, Result
from rooflab.benchmark.lm_memory import CLASSES
from rooflab.benchmark.lm_profile import Pass
from rooflab.plots import plot_memory_phases, plot_memory_timeline, plot_step_times, plot_time_shares
from rooflab.plots.steps import _CLASS_COLORS
from rooflab.plots.timeline import CATEGORY_COLORS
from rooflab.profiler import CATEGORIES


def result(size, length, *samples, mode="both", device="cpu", **options):
    status = "ok" if samples else OUT_OF_MEMORY
    case = Case(size, length, mode=mode, device=device)
    return Result(case, samples_ms=tuple(map(float, samples)), status=status, **options)


ROWS = [
    result("small", 128, 10, 12, 14),
    result("small", 256, 30, 30),
    result("2.7B", 256),
    result("2.7B", 128, 100, 140),
    result("small", 128, 3, mode="forward"),
]


def points(axes, name):
    """(x, mean, spread below, spread above) of a line with error bars."""
    found = next(bars for bars in axes.containers if bars.get_label() == name)
    line, _, (segments,) = found
    spans = [segment[:, 1] for segment in segments.get_segments()]
    return [(x, y, y - low, high - y) for x, y, (low, high) in zip(*line.get_data(), spans, strict=True)]


def test_times_and_their_spread_are_drawn_by_size_length_and_mode(tmp_path):
    named = plot_step_times(ROWS, panel_titles={ROWS[0].case.mode: "a pass"})
    assert named.axes[0].get_title(loc="left") == "a pass"
    figure = plot_step_times(ROWS, title="Steps", note="on a laptop")
    both, forward = figure.axes
    (x, mean, low, high), (_, last, *none) = points(both, "small")
    assert (x, mean) == (128, pytest.approx(0.012)) and low == high == pytest.approx(0.001632993)
    assert last == pytest.approx(0.030) and none == pytest.approx([0, 0])
    assert [x for x, *_ in points(both, "2.7B")] == [128]
    (alone,) = (line for line in forward.lines if line.get_label() == "small")  # which has no spread
    assert alone.get_xydata().tolist() == [[128, pytest.approx(0.003)]] and not forward.containers
    crosses = [line for line in both.lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert [list(line.get_xdata()) for line in crosses] == [[256]]
    assert {"Steps", "both", "forward", "on a laptop", "small", "2.7B", "out of memory"} <= {
        *texts(figure), figure.get_suptitle()
    }  # fmt: skip
    assert both.get_ylabel() == "time a step (mean, std)"
    saved(figure, tmp_path)


def test_contenders_have_lines_of_their_own():
    rows = [ROWS[0], dataclasses.replace(ROWS[0], contender="torch")]
    assert {"small, rooflab", "small, torch"} <= set(texts(plot_step_times(rows)))


def test_a_model_is_called_one():
    figure = plot_step_times([result("small", 128, 10, device=rl.meta("H200"))])
    assert figure.axes[0].get_ylabel() == "time a step (modelled, not measured)"


@pytest.mark.parametrize("rows", [[], [result("small", 128)], [ROWS[0], ROWS[0]]])
def test_times_need_results_that_differ(rows):
    with pytest.raises(ValueError, match=r"\[plots\] results"):
        plot_step_times(rows)


HELD = {
    "forward": {"parameters": 500_000_000, "saved activations": 300_000_000},
    "optimizer": {"parameters": 500_000_000, "gradients": 500_000_000, "mystery": 7_000_000},
}


def test_memory_is_stacked_by_class_in_the_same_order_and_colours(tmp_path):
    figure = plot_memory_phases(
        {"small": HELD, "none": {"forward": {"parameters": 1}}}, levels={"80 MB": 8e7}, note="why"
    )
    axes = figure.axes[0]
    bars = [(round(bar.get_x()), round(bar.get_width())) for bar in axes.patches if bar.get_width() > 1]
    mb = 1_000_000
    assert bars == [
        (0, 500 * mb), (500 * mb, 300 * mb),
        (0, 500 * mb), (500 * mb, 500 * mb), (1000 * mb, 7 * mb),
    ]  # fmt: skip
    seen = set(texts(figure))
    assert {
        "small: forward",
        "small: optimizer",
        "none: forward",
        "763 MiB",
        "960 MiB",
        "80 MB",
        "why",
        "mystery",
    } <= seen
    assert [line.get_xdata()[0] for line in axes.lines] == [8e7]
    colors = {bar.get_facecolor() for bar in axes.patches if bar.get_width() == 500 * mb and bar.get_x() == 0}
    assert len(colors) == 1
    saved(figure, tmp_path)


@pytest.mark.parametrize(
    "memories", [{}, {"a": {}}, {"a": {"forward": {}}}, {"a": {"forward": {"parameters": -1, "logits": 3}}}]
)
def test_memory_needs_something_held(memories):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_memory_phases(memories)


def test_every_class_has_a_colour_of_its_own():
    assert set(CLASSES) <= set(_CLASS_COLORS) and len(set(_CLASS_COLORS.values())) == len(_CLASS_COLORS)
    assert set(CATEGORIES) == set(CATEGORY_COLORS) and len(set(CATEGORY_COLORS.values())) == len(CATEGORY_COLORS)


def test_shares_of_time_have_the_colours_of_timelines(tmp_path):
    passes = (
        Pass("forward", 3, 4.0, 5.0, {"softmax": 1.0, "gemm": 3.0}),
        Pass("optimizer", 1, 2.0, 2.0, {"optimizer": 2.0}),
    )
    figure = plot_time_shares([dataclasses.replace(ROWS[0], profile=passes)], title="Where time goes")
    bars = [bar for bar in figure.axes[0].patches if bar.get_width()]
    assert [round(bar.get_width()) for bar in bars] == [75, 25, 100]
    from matplotlib.colors import to_hex

    assert [to_hex(bar.get_facecolor()).upper() for bar in bars] == [
        CATEGORY_COLORS[name].upper() for name in ("gemm", "softmax", "optimizer")
    ]
    assert {"small L128: forward", "small L128: optimizer", "75 %", "gemm", "Where time goes"} <= set(texts(figure))
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="at least one that is profiled"):
        plot_time_shares(ROWS)
    twice = [dataclasses.replace(row, profile=passes) for row in (ROWS[0], ROWS[4])]
    with pytest.raises(ValueError, match="two of small L128: forward"):
        plot_time_shares(twice)


def test_phases_of_a_recording_are_marked_where_they_begin(tmp_path):
    with rl.memory.record() as timeline:
        timeline.mark("first")
        x = rl.ones(100)
        y = rl.exp(x)
        timeline.mark("second")
        z = rl.exp(y)
        del x, z
        timeline.mark("none")
    figure = plot_memory_timeline(timeline, over="events")
    axes = figure.axes[0]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"] == [1, 3, 6]
    names = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert (names["first"], names["second"]) == (2, 4.5) and "none" not in names
    assert axes.get_xlabel() == "allocations and frees, in their order" and axes.get_xlim() == (0, 6)
    over_time = plot_memory_timeline(timeline).axes[0]
    starts = [line.get_xdata()[0] for line in over_time.lines if line.get_linestyle() == ":"]
    assert starts == [phase.start_us for phase in timeline.phases]
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="over: expected 'time' or 'events'"):
        plot_memory_timeline(timeline, over="op")
