"""Who accesses what: each lane stands in the word that it accesses, and each row is a sector or a row of banks."""

import matplotlib as mpl
import pytest
from plots.figures import saved, texts

from rooflab.cuda import WarpRequest
from rooflab.plots import plot_warp_requests

LANES = tuple(range(32))


def request(addresses, cost, memory="global", size=4, lanes=LANES):
    return WarpRequest(7, memory, "load", "x" if memory == "global" else "", size, lanes, tuple(addresses), cost)


def cells(axes):
    """The text of each cell by (row, column)."""
    return {
        (int(text.get_position()[1]), int(text.get_position()[0])): text.get_text()
        for text in axes.texts
        if text.get_text()[0].isdigit() and text.get_position()[0] > 0 and text.get_position()[1] > 0
    }


def test_lanes_on_sectors(tmp_path):
    patterns = {
        "together": request([4 * lane for lane in LANES], 4),
        "one further": request([4 * lane + 4 for lane in LANES], 5),
        "far apart": request([128 * lane for lane in LANES], 32),
    }
    figure = plot_warp_requests(patterns, title="a warp")
    together, further, apart = figure.axes
    assert cells(together) == {divmod(lane, 8): str(lane) for lane in LANES}
    assert cells(further) == {divmod(lane + 1, 8): str(lane) for lane in LANES}
    assert cells(apart) == {(lane, 0): str(lane) for lane in LANES}
    shown = texts(figure)
    assert {"together (line 7: load of x)", "5 sectors, 80.0% of the bytes used", "byte 128", "byte 3968"} <= set(shown)
    unused = [patch for patch in further.patches if patch.get_facecolor() == mpl.colors.to_rgba("#f3cfae")]
    assert len(unused) == 8
    saved(figure, tmp_path)


def test_lanes_that_share_a_word_and_lanes_of_several_words():
    panels = plot_warp_requests(
        [request([256 * (lane // 16) for lane in LANES], 2), request([4 * (lane % 16) for lane in LANES], 2),
         request([0] * 31 + [4], 1), request([16 * lane for lane in (0, 3)], 2, size=16, lanes=(0, 3))]
    ).axes  # fmt: skip
    assert cells(panels[0]) == {(0, 0): "0-15", (1, 0): "16-31"}
    assert cells(panels[1])[0, 3] == "3,19"
    assert cells(panels[2]) == {(0, 0): "0-30", (0, 1): "31"}
    assert cells(panels[3]) == {(0, k): "0" for k in range(4)} | {(1, 4 + k): "3" for k in range(4)}
    spread = plot_warp_requests([request([4 * (lane % 2) for lane in LANES], 1)]).axes[0]
    assert cells(spread)[0, 0] == "16 x"


def test_lanes_on_banks_and_the_bank_where_they_meet():
    column = [128 * lane for lane in LANES]
    padded = [132 * lane for lane in LANES]
    crowded, free = plot_warp_requests([request(column, 32, "shared"), request(padded, 1, "shared")]).axes
    assert cells(crowded) == {(lane, 0): str(lane) for lane in LANES}
    assert cells(free) == {(lane, lane): str(lane) for lane in LANES}
    marked = [
        sum(patch.get_edgecolor() == mpl.colors.to_rgba("#D55E00") for patch in axes.patches)
        for axes in (crowded, free)
    ]
    assert marked == [32, 0]
    assert "32 lanes, 4 bytes each: 32 wavefronts" in [text.get_text() for text in crowded.texts]
    assert "line 7: shared load" in [text.get_text() for text in free.texts]
    one_bin = WarpRequest(7, "shared", "atomic", "", 4, LANES, (8,) * 32, 32)
    shared_word = plot_warp_requests([one_bin, request([8] * 32, 1, "shared")]).axes
    colors = [[patch.get_edgecolor() for patch in axes.patches] for axes in shared_word]
    assert [mpl.colors.to_rgba("#D55E00") in found for found in colors] == [True, False]
    groups = [16 * lane for lane in LANES]  # eight lanes at a time: each bank gives one word to each group
    wide = plot_warp_requests([request(groups, 4, "shared", size=16)]).axes[0]
    assert not [patch for patch in wide.patches if patch.get_edgecolor() == mpl.colors.to_rgba("#D55E00")]


@pytest.mark.parametrize("requests", [[], {}, [request([0] * 32, 1)] * 13, [3], None, 5, "no"])
def test_there_must_be_something_to_draw(requests):
    with pytest.raises(ValueError, match=r"\[plots\] requests: expected"):
        plot_warp_requests(requests)
