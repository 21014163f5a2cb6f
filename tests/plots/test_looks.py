"""No two series look alike, and no text of a figure lies outside of it or on another."""

import re
from itertools import combinations
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from plots.figures import saved, texts, timing

import rooflab as rl
from rooflab import plots
from rooflab.labs.lab4_speculative import plot_speedup
from rooflab.plots.looks import looks
from rooflab.roofline import SPECS, Point

LONG = "a name of a kernel with all of its template arguments, which somebody wrote out"


def series(n, prefix="series"):
    return {f"{prefix} {i}": {16: 1.0 + i, 32: 2.0 + i, 64: 3.0 + i} for i in range(n)}


def losses(n, prefix="run"):
    return {f"{prefix} {i}": np.linspace(5 + i, 3 + i, 40) for i in range(n)}


def kernels(categories):
    return [
        SimpleNamespace(name="k", op="k", range="r", category=one, start_us=9.0 * i, duration_us=8.0, step=0)
        for i, one in enumerate(categories)
    ]


def shares(n, prefix="part"):
    return {"FLOPs": {f"{prefix} {i}": 1 for i in range(n)}}


def phases(n, prefix="class"):
    return {"small": {"forward": {"parameters": 9, "loss": 9} | {f"{prefix} {i}": 9 for i in range(n)}}}


FIGURES = {
    "lines": lambda n, name="s": plots.plot_lines(series(n, name), "FLOP", "FLOPs"),
    "levels": lambda n, name="s": plots.plot_lines(series(1), "B", "y", levels=dict.fromkeys(map(str, range(6)), 2.0)),
    "latency": lambda n, name="s": plots.plot_latency_vs_size(series(n, name)),
    "samples": lambda n, name="s": plots.plot_samples({k: [*v.values()] for k, v in series(n, name).items()}),
    "length": lambda n, name="s": plots.plot_length_sweep({k: v | {128: None} for k, v in series(n, name).items()}),
    "losses": lambda n, name="s": plots.plot_losses(losses(n, name)),
    "learning": lambda n, name="s": plots.plot_learning(runs := losses(n, name), {k: {1: 0.1, 40: 0.5} for k in runs}),
    "waves": lambda n, name="s": plots.plot_waves(
        {f"{name} {i}": {1: 0.5, 2: 0.9} for i in range(n // 2)}, {f"{name}, {i}": {1: 0.5} for i in range(n - n // 2)}
    ),
    "speedup": lambda n, name="s": plot_speedup(series(n, name)),
    "shares": lambda n, name="s": plots.plot_shares(shares(n, name)),
    "phases": lambda n, name="s": plots.plot_memory_phases(phases(n - 2, name)),
    "timeline": lambda n, name="s": plots.plot_timeline(kernels(["gemm", *(f"{name} {i}" for i in range(n - 1))])),
}  # fmt: skip


def drawn(figure):
    """How each entry of the legends looks."""
    handles = [handle for one in figure.legends for handle in one.legend_handles]
    handles = handles or [handle for axes in figure.axes for handle in axes.get_legend().legend_handles]
    for one in handles:
        if isinstance(one, matplotlib.patches.Patch):
            yield matplotlib.colors.to_hex(one.get_facecolor()), one.get_hatch()
        elif isinstance(one, matplotlib.lines.Line2D):
            yield matplotlib.colors.to_hex(one.get_color()), str(one._dash_pattern), str(one.get_marker())


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("n", [8, pytest.param(20, marks=pytest.mark.slow)])
def test_no_two_series_look_alike(kind, n):
    found = list(drawn(FIGURES[kind](n)))
    assert len(found) >= min(n, 7) and len(set(found)) == len(found)


def test_more_series_than_looks_are_refused():
    assert len(set(looks(map(str, range(49))).values())) == 49
    with pytest.raises(
        ValueError, match=r"^\[plots\] at most 49 series can be told apart, got 50; draw fewer of them$"
    ):
        plots.plot_losses(losses(50))
    with pytest.raises(ValueError, match=r"^\[plots\] levels: expected at most 6, got 7$"):
        plots.plot_lines(series(1), "B", "y", levels=dict.fromkeys("abcdefg", 1.0))
    with pytest.raises(ValueError, match=r"^\[plots\] kinds: expected at most 7, got 8$"):
        plots.plot_attention_maps({"a": np.eye(8)}, list("abcdefgh"), list("abcdefgh"))


def test_no_two_roofs_look_alike():
    names = [name for name, spec in SPECS.items() if "float16" in spec.peak_tflop_s]
    for machines, dtypes in ((names, ["float16"]), (names[:14], ["float32", "float16"])):
        figure = plots.plot_roofline(machines, dtype=dtypes)
        ridges = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
        assert (
            len({(line.get_color(), line.get_marker()) for line in ridges})
            == len(ridges)
            == len(machines) * len(dtypes)
        )
        assert len(set(drawn(figure))) == len(ridges)
    with pytest.raises(ValueError, match=r"^\[plots\] machines: with 3 dtypes at most 14, got 15$"):
        plots.plot_roofline(names[:15], dtype=["float32", "float16", "bfloat16"])
    with pytest.raises(ValueError, match=r"^\[plots\] points: expected at most 42 series, got 43$"):
        plots.plot_roofline("A6000", [Point("p", 1.0, 1.0, series=str(i)) for i in range(43)])


def boxes(figure, found):
    figure.draw_without_rendering()
    renderer = FigureCanvasAgg(figure).get_renderer()
    return [one.get_window_extent(renderer) for one in found]


def assert_inside(figure, found):
    for box in boxes(figure, found):
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 1, box
        assert figure.bbox.y0 <= box.y0 + 1 and box.y1 <= figure.bbox.y1 + 1, box


@pytest.mark.slow(but_every=3)
@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("n", [3, 7])
def test_long_names_lie_inside_of_the_figure(kind, n):
    figure = FIGURES[kind](n, LONG)
    assert_inside(figure, figure.legends)
    assert all(axes.bbox.width > 0.4 * figure.bbox.width / len(figure.axes) for axes in figure.axes), (
        "room for the data"
    )


@pytest.mark.parametrize("kind", FIGURES)
def test_dollar_signs_in_names_are_no_mathematics(kind, tmp_path):
    figure = FIGURES[kind](3, r"$\bad{$ of $5_x")
    content = saved(figure, tmp_path)
    assert (
        content
        and figure.findobj(lambda one: isinstance(one, Text) and one.get_parse_math() and "$" in one.get_text()) == []
    )


@pytest.mark.parametrize("letters", [30, 80, 400])
def test_labels_of_long_names_lie_inside_of_the_axes(letters):
    names = [("layer.0 q_proj " * 30)[:letters] + str(i) for i in range(6)]
    figure = plots.plot_roofline("H100", [Point(name, 10 + i / 100, 50 + i / 100) for i, name in enumerate(names)])
    labels = [text for text in figure.axes[0].texts if "layer.0" in text.get_text()]
    assert len(labels) == 1 and labels[0].get_text().count("\n") < 4
    assert_inside(figure, labels)
    (box,) = boxes(figure, labels)
    axes = figure.axes[0].bbox
    assert axes.x0 <= box.x0 and box.x1 <= axes.x1


def test_labels_without_room_are_left_out_and_counted():
    points = [Point(f"kernel {i} of many others", 1 + i * 37 % 60 / 6, 5 + i * 71 % 60 / 6) for i in range(60)]
    figure = plots.plot_roofline("H100", points)
    axes = figure.axes[0]
    labels = [text for text in axes.texts if "kernel" in text.get_text()]
    assert any("ridge" in text.get_text() for text in axes.texts)
    figure.draw_without_rendering()
    without_leaders = [Text.get_window_extent(label) for label in labels]
    assert not any(one.overlaps(other) for one, other in combinations(without_leaders, 2))
    named = sum(text.get_text().count("kernel") for text in labels)
    found = re.fullmatch(r"arithmetic intensity \(FLOP/byte\); (\d+) of 60 points are named", axes.get_xlabel())
    assert found and 9 < named == int(found[1]) < 60
    figure = plots.plot_roofline("H100", [Point(f"kernel {i}", 10 + i / 1e6, 50) for i in range(9)])
    assert figure.axes[0].get_xlabel().endswith("; 2 of 9 points are named")


@pytest.mark.parametrize("note", [" ", "two\n\nlines", "a line\n"])
def test_blank_lines_of_notes_and_names_are_lines(note):
    figure = plots.plot_memory_phases(
        {f"a{note}": {"forward": {"parameters": 9}}, "b": {"loss": {"parameters": 9}}}, note=note
    )
    assert figure.legends[0].get_title().get_text() == note
    FIGURES["lines"](2, note)


def test_a_long_note_below_a_legend_leaves_room_for_the_data():
    figures = [plots.plot_memory_phases(phases(2), note=note) for note in ("a note", "a long note, " * 150)]
    for figure in figures:
        assert_inside(figure, figure.legends)
    short, long = (figure.axes[0].bbox.height for figure in figures)
    assert long > 0.8 * short


def assert_ticks_have_room(figure):
    figure.draw_without_rendering()
    low, high = figure.axes[0].get_xlim()
    labels = [tick.label1 for tick in figure.axes[0].xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    labels = [label for label in labels if label.get_text()]
    assert labels and len({label.get_text() for label in labels}) == len(labels)
    for one, other in combinations(boxes(figure, labels), 2):
        assert not one.overlaps(other)
    return [label.get_text() for label in labels]


@pytest.mark.parametrize(
    ("sizes", "labels"),
    [
        ([100, 120], ["100", "120"]),
        ([3], ["3"]),
        ([5, 6, 7], ["5", "6", "7"]),
        ([*range(1, 12), 1000], ["1", "2", "4", "8", "1000"]),
        ([1, 2**20, 2**30], ["2⁰", "2²⁰", "2³⁰"]),
        ([1000, 1001, 1002, 4000, 1048576], ["1000", "4000", "1,048,576"]),
        ([10**6, 10**7, 10**8, 10**9], ["1,000,000", "10,000,000", "100,000,000", "1,000,000,000"]),
    ],
)
def test_sizes_are_written_exactly_and_have_room(sizes, labels):
    assert assert_ticks_have_room(plots.plot_latency_vs_size({"a": dict.fromkeys(sizes, 1.0)})) == labels
    assert_ticks_have_room(plots.plot_length_sweep({"a": dict.fromkeys(sizes, 1.0)}))
    found = assert_ticks_have_room(plots.plot_lines({"a": dict.fromkeys(sizes, 1.0)}, "B", "y"))
    assert found == labels or len(sizes) > 2
    assert_ticks_have_room(plots.plot_lines({"a": dict.fromkeys(sizes, 1.0)}, "B", "y", linear=True))


def test_lengths_of_many_sizes_have_room_beside_a_legend():
    lengths = [2**power for power in range(16, 25)]
    assert_ticks_have_room(plots.plot_length_sweep({"standard attention": dict.fromkeys(lengths, 1.0)}))
    assert_ticks_have_room(plots.plot_length_sweep({"standard attention": {3 * n: 1.0 for n in lengths}}))


BARS = {
    "launches": ({"eager": 12345, "graph": 12312}, "launches", ["12,345 launches   1.003x", "12,312 launches   1x"]),
    "tokens/s": ({"a": 1e6, "b": 1000100.0}, "tokens/s", ["1,000,000 tokens/s   1x", "1,000,100 tokens/s   1.0001x"]),
    "B": ({"a": 72_123_456, "b": 8e6}, "B", ["72.1 MB   9.02x", "8 MB   1x"]),
    "measured": ({"a": timing(2.0001), "b": timing(2.0002)}, "ms", ["2 ms   1x", "2 ms   1x"]),
    "decades": ({"a": 1e-4, "b": 1e8}, "tokens", ["0.0001 tokens   1x", "100,000,000 tokens   1,000,000,000,000x"]),
    "long": ({LONG: 3, LONG + ".": 5_000_000}, "launches", ["3 launches   1x", "5,000,000 launches   1,666,667x"]),
}  # fmt: skip


@pytest.mark.parametrize("which", BARS)
def test_bars_tell_counts_apart_and_have_room_for_them(which):
    values, unit, labels = BARS[which]
    figure = plots.plot_bars(values, unit)
    assert [text.get_text() for text in figure.axes[0].texts] == labels
    assert_ticks_have_room(figure)
    assert_inside(figure, [*figure.axes[0].texts, *figure.axes[0].get_yticklabels()])


def test_memory_below_zero_is_written_in_one_unit():
    old = rl.empty(2 * 2**20)
    with rl.memory.record() as timeline:
        kept = rl.ones(1000)
        del old
        kept = kept + 1
    figure = plots.plot_memory_timeline(timeline, binary=True)
    figure.draw_without_rendering()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "-8 MiB", "-6 MiB", "-4 MiB", "-2 MiB", "0",
    ]  # fmt: skip


def test_figures_that_were_given_are_not_said_to_be_the_datasheets(tmp_path, monkeypatch):
    from rooflab.cli import cost, main

    shown = []
    monkeypatch.setattr(cost, "save_figure", lambda figure, path: shown.append(" ".join(texts(figure))))
    asked = ["cost", "--model", "gpt2", "--length", "8", "--plot", str(tmp_path / "figure.png")]
    for options in ("--gpu H100", "--gpu H100 --bandwidth 100", "--gpu H100 --peak 1",
                    "--gpu T4 --peak 1 --bandwidth 9", "--bandwidth 100 --peak 1"):  # fmt: skip
        main([*asked, *options.split()])
    roofs = [
        "H100 SXM, datasheet, dense", "H100 SXM, datasheet, dense, bandwidth as given",
        "H100 SXM, datasheet, dense, peak as given", "T4, as given", "the machine, as given",
    ]  # fmt: skip
    assert all(text.endswith(f"under the roof of {roof}") or f"under the roof of {roof} " in text
               for text, roof in zip(shown, roofs, strict=True)), shown  # fmt: skip
    assert [text.count("as given") for text in shown] == [0, 1, 1, 1, 1]
