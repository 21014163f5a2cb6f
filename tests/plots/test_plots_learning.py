"""What the figures of learning and of attention maps hold. How they look was judged by eye."""

import numpy as np
import pytest
from plots.figures import saved, texts

from rooflab.plots import plot_accuracy_by_layers, plot_accuracy_grid, plot_attention_maps, plot_learning, plot_losses

LOSSES = {"1 layer": np.linspace(4, 2, 60), "2 layers": [3.0, 1.0]}
ACCURACIES = {"1 layer": {60: 0.13, 30: 0.1}, "2 layers": {2: 0.99}}


def levels(axes):
    """Heights of the horizontal lines that cross the whole plot."""
    return [line.get_ydata()[0] for line in axes.lines if list(line.get_xdata()) == [0, 1]]


def test_learning_draws_every_step_the_mean_of_ten_and_what_guessing_earns(tmp_path):
    figure = plot_learning(LOSSES, ACCURACIES, guess=(np.log(8), 1 / 8), title="8 pairs", note="a note")
    left, right = figure.axes
    every, mean, short, same = (line.get_xydata() for line in left.lines[:4])
    assert every[:, 0].tolist() == list(range(1, 61)) and every[0, 1] == 4
    assert len(mean) == 51 and mean[0] == pytest.approx([5.5, every[:10, 1].mean()])
    assert short.tolist() == same.tolist() == [[1, 3], [2, 1]]
    assert [line.get_xydata().tolist() for line in right.lines[:2]] == [[[30, 0.1], [60, 0.13]], [[2, 0.99]]]
    assert levels(left) == [np.log(8)] and levels(right) == [1 / 8]
    seen = texts(figure)
    for text in ("guessing, 2.08", "guessing, 12.5%", "8 pairs", "1 layer", "2 layers", "a note"):
        assert text in seen
    saved(figure, tmp_path)


def test_a_negative_loss_and_a_single_one_are_seen():
    for figure in (plot_learning({"a": [-1.0]}, {"a": {1: 0.5}}), plot_losses({"a": [-1.0]})):
        axes = figure.axes[0]
        low, high = axes.get_ylim()
        assert low < -1 < high and axes.lines[1].get_marker() == "o"
    assert plot_losses({"a": [-1.0, 1.0]}).axes[0].get_ylim()[0] < -1 and plot_losses(LOSSES).axes[0].get_ylim()[0] == 0


def test_learning_without_guess_and_refusals():
    assert levels(plot_learning(LOSSES, ACCURACIES).axes[0]) == []
    for losses, accuracies in (
        ({}, {}),
        ({"a": [1.0]}, {"b": {1: 0.5}}),
        ({"a": []}, {"a": {1: 0.5}}),
        ({"a": [1.0]}, {"a": {}}),
        ({"a": [float("nan")]}, {"a": {1: 0.5}}),
    ):
        with pytest.raises(ValueError, match=r"\[plots\] (losses|accuracies)"):
            plot_learning(losses, accuracies)


def test_losses_are_every_step_and_the_mean_of_ten(tmp_path):
    figure = plot_losses(LOSSES, guess=5.545, title="3 parameters")
    (axes,) = figure.axes
    every, mean, short, same = (line.get_xydata() for line in axes.lines[:4])
    assert every[:, 0].tolist() == list(range(1, 61)) and every[0, 1] == 4
    assert len(mean) == 51 and mean[0] == pytest.approx([5.5, every[:10, 1].mean()])
    assert short.tolist() == same.tolist() == [[1, 3], [2, 1]]
    assert levels(axes) == [5.545] and axes.get_ylabel() == "loss (nats a token)"
    assert {"guessing, 5.54", "3 parameters", "1 layer", "2 layers"} <= set(texts(figure))
    saved(figure, tmp_path)
    assert levels(plot_losses(LOSSES).axes[0]) == []
    for losses in ({}, {"a": []}, {"a": [1.0, float("inf")]}):
        with pytest.raises(ValueError, match=r"\[plots\] losses"):
            plot_losses(losses)


def test_accuracy_by_layers_has_a_mark_a_seed_and_the_mean_in_words(tmp_path):
    figure = plot_accuracy_by_layers({2: 0.995, 1: [0.12, 0.13]}, guess=1 / 8, bar=0.9, title="The jump")
    (axes,) = figure.axes
    line, *marks = (one.get_xydata().tolist() for one in axes.lines if list(one.get_xdata()) != [0, 1])
    assert line == [[1, 0.125], [2, 0.995]] and marks == [[[1, 0.12], [1, 0.13]], [[2, 0.995]]]
    assert sorted(levels(axes)) == [1 / 8, 0.9]
    assert {"12.5%", "99.5%", "guessing, 12.5%", "solved, 90%", "The jump"} <= set(texts(figure))
    saved(figure, tmp_path)


@pytest.mark.parametrize("accuracies", [{}, {1: []}, {1: 1.5}, {1: [0.5, -0.1]}, {1: float("nan")}])
def test_what_is_no_accuracy_is_refused(accuracies):
    with pytest.raises(ValueError, match=r"\[plots\] accurac"):
        plot_accuracy_by_layers(accuracies)


def test_accuracies_lie_beside_the_axis():
    figure = plot_accuracy_by_layers({1: 0.12, 2: [1, 0.9], 40: 0.5})
    figure.draw_without_rendering()
    axes = figure.axes[0]
    ticks = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert not any(text.get_window_extent().overlaps(tick) for text in axes.texts for tick in ticks)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "40"], "1 and 2 would be 12"


def test_a_grid_says_each_accuracy_at_its_layers_and_pairs(tmp_path):
    figure = plot_accuracy_grid({(2, 16): 0.995, (1, 8): 0.125, (1, 16): 0.06}, title="Accuracy", note="a note")
    axes = figure.axes[0]
    written = {(text.get_position(), text.get_text(), text.get_color()) for text in axes.texts}
    assert written == {((0, 0), "12.5%", "black"), ((1, 0), "6.0%", "black"), ((1, 1), "99.5%", "white")}
    assert [text.get_text() for text in axes.get_xticklabels()] == ["8", "16"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1", "2"]
    assert axes.get_images()[0].get_array().mask.tolist() == [[False, False], [True, False]]
    assert {"Accuracy", "a note"} <= set(texts(figure))
    saved(figure, tmp_path)


@pytest.mark.parametrize("accuracies", [{}, {(1, 8): 1.5}, {(1, 8): float("nan")}])
def test_a_grid_of_what_is_no_accuracy_is_refused(accuracies):
    with pytest.raises(ValueError, match=r"\[plots\] accurac"):
        plot_accuracy_grid(accuracies)


LABELS, KINDS = ["A", "3", "B", "5", "B", "A"], ["key", "value", "key", "value", "query", "query"]


def test_maps_tell_kinds_by_colour_and_ring_what_is_marked(tmp_path):
    maps = {"layer 1": np.tril(np.full((6, 6), 0.2)), "layer 2": np.eye(6)}
    figure = plot_attention_maps(maps, LABELS, KINDS, {"layer 2": [(4, 3), (5, 1)]}, title="Two layers")
    first, second, _ = figure.axes
    assert [axes.get_images()[0].get_array().tolist() for axes in (first, second)] == [
        m.tolist() for m in maps.values()
    ]
    assert first.get_images()[0].get_clim() == (0, 1)
    rings = [line.get_xydata().tolist() for line in second.lines if line.get_marker() == "o"]
    assert rings == [[[3, 4]], [[1, 5]]], "a ring stands at (column, row)"
    assert not [line for line in first.lines if line.get_marker() == "o"]
    for axis in (first.xaxis, first.yaxis):
        colors = [text.get_color() for text in axis.get_ticklabels()]
        assert [text.get_text() for text in axis.get_ticklabels()] == LABELS
        assert [colors[i] == colors[j] for i, j in ((0, 2), (1, 3), (4, 5), (0, 1), (0, 4), (1, 4))] == [True] * 3 + [
            False
        ] * 3
    assert sorted({line.get_ydata()[0] for line in first.lines if list(line.get_xdata()) == [0, 1]}) == [3.5]
    assert {"key", "value", "query", "layer 1", "layer 2"} <= set(texts(figure))
    saved(figure, tmp_path)


def test_maps_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match=r"map 'm': expected \(6, 6\) for 6 labels, got \(5, 5\)"):
        plot_attention_maps({"m": np.eye(5)}, LABELS, KINDS)
    for maps, kinds in (({}, KINDS), ({"m": np.eye(6)}, KINDS[:5])):
        with pytest.raises(ValueError, match=r"\[plots\] maps, kinds"):
            plot_attention_maps(maps, LABELS, kinds)
