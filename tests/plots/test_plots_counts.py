"""Lines and shares of counts draw what they were given."""

import pytest
from plots.figures import saved, texts

import rooflab as rl
from rooflab.plots import plot_lines, plot_losses, plot_shares, plot_timeline, plot_waves


def test_lines_go_through_their_counts_in_order_of_size(tmp_path):
    series = {"B = 1": {64: 30.0, 1: 1.0, 1024: 150.0}, "B = 64": {1: 60.0, 4096: 100.0}}
    figure = plot_lines(series, "FLOP/byte", "intensity", title="GPT-2 XL", levels={"ridge of a T4": 216.7})
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines["B = 1"].get_xdata()) == [1, 64, 1024] and list(lines["B = 1"].get_ydata()) == [1, 30, 150]
    assert set(lines["ridge of a T4"].get_ydata()) == {216.7}
    assert {"B = 1", "B = 64", "ridge of a T4", "GPT-2 XL"} <= set(texts(figure))
    assert figure.axes[0].get_ylabel() == "intensity" and figure.axes[0].get_xlabel() == "tokens L"
    assert list(figure.axes[0].get_xticks()) == [2**power for power in range(0, 13, 2)]
    saved(figure, tmp_path)


def test_linear_axes_begin_at_zero(tmp_path):
    figure = plot_lines({"fp16": {250: 2.5, 5000: 32.0}}, "", "sum", "additions", linear=True)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert (axes.get_xlim()[0], axes.get_ylim()[0]) == (0, 0)
    assert len(axes.get_xticks()) >= 4 and {"0", "10", "30"} <= set(texts(figure)), "the steps of an axis are alike"
    saved(figure, tmp_path)


@pytest.mark.parametrize(
    "series", [{}, {"a": {}}, {"a": {0: 1.0}}, {"a": {1: 0.0}}, {"a": {1: float("inf")}}, {"a": {1: float("nan")}}]
)
def test_lines_need_positive_numbers(series):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_lines(series, "B", "bytes")


def test_levels_are_positive():
    with pytest.raises(ValueError, match="level 'ridge'"):
        plot_lines({"a": {1: 1.0}}, "B", "bytes", levels={"ridge": 0})


def test_shares_fill_their_bars_and_are_written_where_there_is_room(tmp_path):
    wholes = {"FLOPs": {"scores": 2, "values": 6}, "bytes": {"scores": 1, "values": 1, "mask": 98}}
    figure = plot_shares(wholes, title="one head")
    bars = figure.axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([25, 75, 0, 1, 1, 98])
    assert [bar.get_x() for bar in bars] == pytest.approx([0, 25, 100, 0, 1, 2])
    seen = texts(figure)
    assert {"25 %", "75 %", "98 %", "FLOPs", "bytes", "scores", "values", "mask", "one head"} <= set(seen)
    assert "1 %" not in seen and "0 %" not in seen
    saved(figure, tmp_path)


@pytest.mark.parametrize("parts", [{}, {"a": 0}, {"a": -1, "b": 2}, {"a": float("inf")}, {"a": float("nan")}])
def test_shares_need_a_whole(parts):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_shares({"FLOPs": parts})
    with pytest.raises(ValueError, match="expected at least one"):
        plot_shares({})


def test_one_point_is_seen():
    figure = plot_lines({"one": {64: 30.0}, "two": {1: 1.0, 64: 30.0}}, "FLOP/byte", "intensity")
    assert [line.get_marker() for line in figure.axes[0].lines] == ["o", "None"]
    assert [line.get_marker() for line in plot_waves({"A100": {1792: 0.9}}).axes[0].lines] == ["o"]
    assert plot_losses({"run": [5.6]}).axes[0].lines[-1].get_marker() == "o"


def test_a_profile_is_no_list_of_kernels():
    with pytest.raises(TypeError, match="expected kernels, such as the attribute kernels of a profile, got Profile"):
        plot_timeline(rl.profile())
