"""What the figures hold: marks, labels, notes. How they look was judged by eye."""

from types import SimpleNamespace

import matplotlib
import pytest
from machine.made_up import ceilings
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from plots.figures import saved, texts, timing

from rooflab.plots import plot_bars, plot_latency_vs_size, plot_roofline, plot_samples, plot_timeline, plot_timelines
from rooflab.roofline import SPECS, Point


def label_boxes(figure: Figure) -> list:
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    axes = figure.axes[0]
    return [matplotlib.text.Text.get_window_extent(text, renderer) for text in axes.texts]


def assert_no_overlap(figure: Figure) -> None:
    boxes = label_boxes(figure)
    frame = figure.bbox
    for index, box in enumerate(boxes):
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 + 1
        for other in boxes[index + 1 :]:
            assert not box.padded(-1).overlaps(other.padded(-1))


TWELVE = [0.25, 0.5, 1, 2, 8, 30, 49, 70, 200, 500, 900, 2000]


# --- roofline ---


@pytest.mark.parametrize(
    "count", [pytest.param(n, marks=[pytest.mark.slow] * (n not in (1, 6, 12))) for n in range(1, 13)]
)
def test_roofline_of_any_number_of_points(count, tmp_path):
    figure = plot_roofline("A6000", {f"point {ai}": ai for ai in TWELVE[-count:]})
    seen = " ".join(texts(figure))
    assert all(f"point {ai}" in seen for ai in TWELVE[-count:])
    assert "ridge 50.4 FLOP/byte" in seen and "38.7 TFLOP/s" in seen and "768 GB/s" in seen
    assert_no_overlap(figure)
    saved(figure, tmp_path)


def test_intensity_only_points_lie_open_on_the_roof():
    figure = plot_roofline("A6000", [Point("low", 0.5), Point("high", 1000)])
    marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [
        (0.5, pytest.approx(0.384e12)),
        (1000, pytest.approx(38.7e12)),
    ]
    assert {line.get_markerfacecolor() for line in marks} == {"white"}


def test_measured_points_are_filled_at_their_speed():
    figure = plot_roofline(ceilings(), [Point("N=512", 512 / 6, 0.1, 0.09, 0.11, series="matmul")])
    marks = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert marks[0].get_ydata()[0] == pytest.approx(0.1e12)
    assert marks[0].get_markerfacecolor() != "white"
    assert any("matmul: measured, bar p20 to p80" in text for text in texts(figure))
    bare = plot_roofline(ceilings(), [Point("N=512", 512 / 6, 0.1, series="matmul")])
    assert "matmul: measured" in texts(bare), "there is no bar"


def test_measured_and_datasheet_roofs_together():
    ours = ceilings()
    figure = plot_roofline([ours, ours.datasheet(), "A6000"], {"p": 1.0}, dtype=["float32", "bfloat16"])
    seen = texts(figure)
    assert sum("measured" in text for text in seen) == 2
    # The CPU's datasheet has no bfloat16 peak.
    assert sum("datasheet, dense" in text for text in seen) == 3
    assert "float32" in seen and "bfloat16" in seen
    assert any("cache, dotted" in text for text in seen)
    assert_no_overlap(figure)


def test_points_that_cover_each_other_share_a_label():
    points = [Point(f"N={n}", 0.5 - 1 / n) for n in (1024, 2048, 4096, 8192)]
    assert "N=1024 … N=8192" in texts(plot_roofline("A6000", points))


def test_roofs_alone():
    assert isinstance(plot_roofline(SPECS["H200"]), Figure)
    unknown = ceilings(name="some CPU")
    assert isinstance(plot_roofline([unknown, unknown.datasheet()]), Figure)


@pytest.mark.parametrize(
    ("machines", "points", "dtype", "message"),
    [
        ([], {"p": 1.0}, "float32", "machines"),
        ("A6000", {}, "float32", "points"),
        ("A6000", [], "float32", "points"),
        ("A6000", {"p": float("nan")}, "float32", "'p'"),
        ("A6000", {"p": -1}, "float32", "'p'"),
        ("A6000", {"p": 0}, "float32", "'p'"),
        ("A6000", [3.0], "float32", "expected a Point"),
        ("A6001", {"p": 1.0}, "float32", "known: A6000"),
        ("T4", {"p": 1.0}, "bfloat16", "no bfloat16"),
        ("T4", {"p": 1.0}, [], "dtype"),
    ],
)
def test_roofline_refuses(machines, points, dtype, message):
    with pytest.raises(ValueError, match=message):
        plot_roofline(machines, points, dtype=dtype)


# --- latency over size ---


def test_latency_notes_what_was_left_out(tmp_path):
    figure = plot_latency_vs_size(
        {
            "gemm": {64: timing(40), 128: timing(300), 256: None},
            "rl.matmul": {64: timing(0.01), 128: 0.05, 512: timing(3)},
        },
        title="two",
        note="over budget",
    )
    seen = texts(figure)
    assert "not measured: gemm at N = 256, 512; rl.matmul at N = 256\nover budget" in seen
    assert "6,000x" in seen  # at 128, the largest size that both have
    saved(figure, tmp_path)


@pytest.mark.parametrize(
    ("ratio", "said"), [(1.0, ""), (1.04, ""), (1.06, "1.1x"), (2.5, "2.5x"), (9.96, "10.0x"), (12.4, "12x")]
)
def test_latency_says_how_much_faster_unless_both_are_alike(ratio, said):
    figure = plot_latency_vs_size({"a": {64: timing(10.0)}, "b": {64: timing(10.0 * ratio)}})
    assert [text for text in texts(figure) if text.endswith("x")] == [said] * bool(said)


def test_plain_numbers_have_no_spread(recwarn):
    axes = plot_latency_vs_size({"a": {1: 1.0, 2: 1.0}, "b": {1: 2.0, 2: 2.0}}).axes[0]
    assert [list(line.get_ydata()) for line in axes.lines] == [[1e-3, 1e-3], [2e-3, 2e-3]] and not axes.containers
    assert not recwarn.list


def test_latency_draws_medians_in_seconds():
    axes = plot_latency_vs_size({"a": {64: timing(40), 32: timing(10)}}).axes[0]
    line = next(line for line in axes.lines if line.get_label() == "a")
    assert list(line.get_xdata()) == [32, 64] and list(line.get_ydata()) == pytest.approx([0.01, 0.04])
    assert axes.get_xscale() == axes.get_yscale() == "log"


@pytest.mark.parametrize("series", [{"one": {64: 1.0}}, {"alike": {64: 1.1, 128: 1.2}, "too": {64: 1.15}}])
def test_latencies_that_are_alike_have_an_axis_with_ticks(series, recwarn, tmp_path):
    figure = plot_latency_vs_size(series)
    saved(figure, tmp_path)
    low, high = figure.axes[0].get_ylim()
    assert sum(low <= tick <= high for tick in figure.axes[0].get_yticks()) >= 2
    assert low < 1.0e-3 < 1.2e-3 < high and not recwarn.list, "the axis of one number had no length"


def test_every_label_of_a_short_latency_axis_has_its_unit():
    figure = plot_latency_vs_size({"a": {32: timing(50), 64: timing(300)}})
    figure.draw_without_rendering()
    labels = [label.get_text() for which in (False, True) for label in figure.axes[0].get_yticklabels(minor=which)]
    assert "100 ms" in labels and all(label.endswith(" ms") for label in labels if label), labels


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ({}, "series"),
        ({"a": {}}, "'a'"),
        ({"a": {64: None}}, "'a'"),
        ({"a": {64: float("nan")}}, "'a' at 64"),
        ({"a": {64: timing(-1.0)}}, "'a' at 64"),
        ({"a": {0: timing(1.0)}}, "'a': size"),
        ({"a": {64: "slow"}}, "'a' at 64"),
    ],
)
def test_latency_refuses(series, message):
    with pytest.raises(ValueError, match=message):
        plot_latency_vs_size(series)


# --- bars ---


def test_bars(tmp_path):
    figure = plot_bars({"8 operations": timing(2.0), "fused": timing(0.25)}, "ms", title="GeLU")
    seen = " ".join(texts(figure))
    assert "2 ms" in seen and "8x" in seen and "250 µs" in seen
    saved(figure, tmp_path)
    assert "0.125x" in " ".join(texts(plot_bars({"a": 8, "b": 1}, "launches", baseline="a")))


@pytest.mark.parametrize("values", [{}, {"a": 0}, {"a": float("nan")}, {"a": -3}, {"a": "x"}, {"a": True}])
def test_bars_refuse(values):
    with pytest.raises(ValueError, match="plots"):
        plot_bars(values, "ms")
    with pytest.raises(ValueError, match="baseline"):
        plot_bars({"a": 1}, "ms", baseline="b")


def test_samples_in_their_order_with_medians(tmp_path):
    figure = plot_samples({"a": [9.0, 2.0, 4.0], "b": [0.3, 0.1]}, title="shots", note="a note")
    axes = figure.axes[0]
    marks = {line.get_label(): list(line.get_ydata()) for line in axes.lines if line.get_marker() != "None"}
    assert marks == {"a": pytest.approx([9e-3, 2e-3, 4e-3]), "b": pytest.approx([3e-4, 1e-4])}
    medians = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "None"]
    assert medians == pytest.approx([4e-3, 2e-4])
    assert {"shots", "a note", "a", "b"} <= set(texts(figure)) and axes.get_yscale() == "log"
    saved(figure, tmp_path)


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [1.0, 0.0]}, {"a": [float("nan")]}])
def test_samples_refuse(series):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_samples(series)


# --- timeline ---


def kernel(start, duration, op="matmul", category="gemm", within="mlp", step=0):
    return SimpleNamespace(
        name=f"{op}_cuda_v1", op=op, range=within, category=category, start_us=start, duration_us=duration, step=step
    )


def test_timeline_is_relative_and_keeps_tiny_kernels_visible(tmp_path):
    records = [kernel(1e9 + 500, 0.1, "exp", "elementwise", "act"), kernel(1e9, 400.0), kernel(1e9 + 450, 40.0)]
    figure = plot_timeline(records, title="MLP")
    axes = figure.axes[0]
    boxes = [path.get_extents() for bars in axes.collections for path in bars.get_paths()]
    assert min(box.x0 for box in boxes) == 0
    span = 500.1
    assert min(box.width for box in boxes) >= 0.002 * span
    seen = texts(figure)
    assert seen.index("mlp") < seen.index("act")  # in order of their first kernel
    assert "2 launches, 440 µs" in seen and "1 launch, 100 ns" in seen
    assert any("drawn that wide" in text for text in seen)
    assert {"gemm", "elementwise"} <= set(seen)
    saved(figure, tmp_path)


def test_kernels_of_a_row_that_overlap_lie_in_lanes_of_it(tmp_path):
    """Streams run at once; kernels one after the other, and a rounding error apart, share a lane."""
    records = [kernel(0, 10), kernel(0, 10, "softmax", "softmax"), kernel(10 - 1e-9, 3), kernel(13, 0), kernel(14, 0)]
    figure = plot_timeline([*records, kernel(2, 3, "exp", "elementwise", "act")])
    boxes = [path.get_extents() for bars in figure.axes[0].collections for path in bars.get_paths()]
    assert len(boxes) == 6
    for index, box in enumerate(boxes):
        for other in boxes[index + 1 :]:
            across = min(box.x1, other.x1) - max(box.x0, other.x0)
            assert across < 1e-6 or min(box.y1, other.y1) - max(box.y0, other.y0) < 1e-6, (box, other)
    assert {round(box.height, 3) for box in boxes} == {0.36, 0.72}
    assert {"5 launches, 23 µs", "1 launch, 3 µs", "matmul", "softmax"} <= set(texts(figure))
    crowd = plot_timeline([kernel(i % 7, 9, "op") for i in range(7)])
    assert crowd.get_figheight() > plot_timeline([kernel(9 * i, 9, "op") for i in range(7)]).get_figheight() + 0.5
    saved(figure, tmp_path)


def test_a_row_has_no_more_than_16_lanes(tmp_path):
    """Thousands of kernels at once make no figure of hundreds of inches."""
    few, many = (plot_timeline([kernel(0, 9 + i / 1000) for i in range(n)]) for n in (16, 2000))
    assert few.get_figheight() == many.get_figheight() < 6
    assert "16 launches, 144 µs" in texts(few), "each has a lane of its own"
    assert "2000 launches, 20 ms,\nmore than 16 at a time" in texts(many)
    assert sum(text == "matmul" for text in texts(many)) == 16, "no name lies on another"
    saved(many, tmp_path)


def test_kernels_that_take_no_time_need_no_lane_of_their_own():
    at_once = [kernel(3, 0) for _ in range(20)]
    one, many = plot_timeline(at_once[:1]), plot_timeline([kernel(0, 3), *at_once, kernel(3, 5), *at_once])
    assert one.get_figheight() == many.get_figheight() == plot_timeline(at_once).get_figheight()
    assert "42 launches, 8 µs" in texts(many)


def test_timeline_rows_and_steps():
    records = [kernel(10 * step + 3 * i, 2, op, step=step) for step in range(3) for i, op in enumerate(("a", "b"))]
    assert {"a", "b", "step 1", "step 2"} <= set(texts(plot_timeline(records, rows="op")))
    assert "(no range)" in texts(plot_timeline([kernel(0, 1, within="")]))
    assert "gemm" in texts(plot_timeline([kernel(0, 0.0)], rows="category"))


def test_timelines_say_their_device():
    on_gpu, on_cpu = (SimpleNamespace(**vars(kernel(0, 1)), device=device) for device in ("cuda:1", "cpu"))
    figure = plot_timeline([on_gpu, on_cpu])
    assert figure.axes[0].get_xlabel() == "time since the first kernel, on cpu and cuda:1"
    profiles = {"one": SimpleNamespace(kernels=[on_gpu]), "two": SimpleNamespace(kernels=[on_cpu])}
    assert {"one, on cuda:1", "two, on cpu"} <= set(texts(plot_timelines(profiles)))


def test_timelines_share_their_axis_and_colours(tmp_path):
    long = [kernel(100, 30, "mul", step=1), kernel(200, 40, "mul", step=2), kernel(250, 50, "sum", step=2)]
    short = [kernel(7, 20, "gelu", step=4)]
    profiles = {"long": SimpleNamespace(kernels=long), "short": SimpleNamespace(kernels=short)}
    figure = plot_timelines(profiles, rows="op", title="both")
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim() and 100 < first.get_xlim()[1] < 102
    starts = [
        [path.vertices[:, 0].min() for path in bars.get_paths()]
        for axes in (first, second)
        for bars in axes.collections
    ]
    assert starts == [[0.0], [50.0], [0.0]], "the last step alone, each from its own start"
    assert {"long", "short", "1 launch, 20 µs"} <= set(texts(figure))
    saved(figure, tmp_path)
    with pytest.raises(ValueError, match="at least one"):
        plot_timelines({})


def test_timeline_of_many_kernels(tmp_path):
    records = [kernel(i * 3.0, 2.0, op, op, op) for i in range(1000) for op in ("gemm", "odd one", "even one")]
    saved(plot_timeline(records), tmp_path)


@pytest.mark.parametrize(
    ("records", "rows", "message"),
    [
        ([], "range", "records"),
        ([kernel(0, 1)], "colour", "rows"),
        ([kernel(0, float("nan"))], "range", "'matmul_cuda_v1': duration_us"),
        ([kernel(0, -1)], "range", "duration_us"),
        ([kernel(float("inf"), 1)], "range", "start_us"),
    ],
)
def test_timeline_refuses(records, rows, message):
    with pytest.raises(ValueError, match=message):
        plot_timeline(records, rows=rows)
