"""Ridges, waves and bursts draw what they were given."""

import pytest
from plots.figures import saved, texts

from rooflab.plots import plot_bursts, plot_ridges, plot_waves
from rooflab.roofline import SPECS


def test_ridges_stand_in_the_order_given_with_their_numbers(tmp_path):
    figure = plot_ridges(["T4", SPECS["A100 40GB"], "H100"])
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["T4", "A100 SXM 40GB", "H100 SXM"]
    lines = {line.get_label(): line for line in axes.lines}
    assert lines["fp32, vector units"].get_xdata() == pytest.approx([8.1 / 0.32, 19.5 / 1.555, 66.9 / 3.35])
    assert lines["16 bits, tensor cores"].get_xdata() == pytest.approx([65 / 0.32, 312 / 1.555, 989.4 / 3.35])
    assert {"203", "201", "295", "25", "13", "20"} <= set(texts(figure))
    low, high = axes.get_ylim()
    assert low > high, "the first machine stands on top"
    saved(figure, tmp_path)


def test_ridges_have_ticks_at_numbers_that_have_room(tmp_path):
    for names in (["T4", "A100", "H100"], ["T4"]):
        figure = plot_ridges(names)
        figure.draw_without_rendering()
        axis = figure.axes[0].xaxis
        low, high = axis.get_view_interval()
        shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
        said = [tick.label1.get_text() for tick in shown]
        assert said in (["10", "20", "50", "100", "200", "500"], ["20", "50", "100", "200"])
        assert not axis.get_minor_ticks()


def test_ridges_need_a_machine_with_both_peaks():
    with pytest.raises(ValueError, match="at least one"):
        plot_ridges([])
    with pytest.raises(ValueError, match="float16"):
        plot_ridges(["EPYC 7763"])
    with pytest.raises(ValueError, match="no datasheet"):
        plot_ridges(["a GPU"])


def test_waves_are_a_line_where_predicted_and_markers_where_measured(tmp_path):
    predicted, measured = {1793: 0.556, 1792: 0.907, 1794: 0.557}, {1792: 0.85, 1856: 1.02}
    figure = plot_waves({"predicted": predicted}, {"here": measured}, cliffs=[1793], title="waves")
    axes = figure.axes[0]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["predicted"].get_xdata()) == [1792, 1793, 1794]
    assert list(lines["predicted"].get_ydata()) == [0.907, 0.556, 0.557]
    assert lines["here"].get_linestyle() == "None" and list(lines["here"].get_ydata()) == [0.85, 1.02]
    assert {"1793", "predicted", "here", "waves"} <= set(texts(figure)) and axes.get_ylim()[1] > 1.02
    assert axes.get_ylabel() == "share of the best"
    assert "here" in texts(plot_waves({}, {"here": measured})), "a reader must learn that it was measured"
    assert plot_waves({"predicted": predicted}).axes[0].get_ylabel() == "share of the work that is useful"
    saved(figure, tmp_path)


@pytest.mark.parametrize("predicted", [{}, {"a": {}}, {"a": {1: 0.0}}, {"a": {1: 90.7}}, {"a": {1: float("nan")}}])
def test_waves_need_shares(predicted):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_waves(predicted)


def bytes_drawn(axes):
    """Bytes of the rows of a panel, used and not used."""
    areas = {}
    for patch in axes.patches:
        areas[patch.get_facecolor()] = areas.get(patch.get_facecolor(), 0) + patch.get_width()
    return sorted(areas.values())


def test_bursts_fill_what_is_used(tmp_path):
    accesses = {"neighbours": range(0, 128, 4), "one further": range(4, 132, 4), "rows": range(0, 32 * 4096, 4096)}
    figure = plot_bursts(accesses, title="a warp")
    panels = figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["neighbours", "one further", "rows"]
    said = [axes.get_xlabel().replace("\n", " ") for axes in panels]
    assert said == [
        "1 burst of 128 bytes, 100.0% of the bytes used",
        "2 bursts of 128 bytes, 50.0% of the bytes used",
        "32 bursts of 128 bytes, 3.1% of the bytes used",
    ]
    assert [bytes_drawn(axes) for axes in panels] == [[128], [128, 128], [128, 32 * 124]]
    saved(figure, tmp_path)


def test_bursts_begin_at_a_multiple_of_their_length():
    axes = plot_bursts({"byte 5": [5]}, size=1, burst=4).axes[0]
    stretches = [(patch.get_x(), patch.get_width()) for patch in axes.patches]
    assert stretches == [(0, 1), (1, 1), (2, 2)], "bytes 4 to 7 come, and 5 is the second of them"
    before, used, after = (patch.get_facecolor() for patch in axes.patches)
    assert before == after != used


@pytest.mark.parametrize(
    ("accesses", "size", "burst"),
    [({}, 4, 128), ({"a": []}, 4, 128), ({"a": [-4]}, 4, 128), ({"a": [0]}, 0, 128), ({"a": [0]}, 4, 0),
     ({"a": range(0, 65 * 128, 128)}, 4, 128)],
)  # fmt: skip
def test_bursts_need_addresses(accesses, size, burst):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_bursts(accesses, size, burst)
