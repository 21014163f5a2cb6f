"""What the drawings hold. How they look was judged by eye."""

import pytest
from matplotlib.colors import to_hex
from plots.figures import saved, texts

from rooflab.labs.lab1 import GEMMA3_270M_CONFIG
from rooflab.plots import plot_attention_tiles, plot_decoder_layer, plot_memory_hierarchy, plot_online_softmax


def kinds(figure):
    """(left, top, width, height) of the tiles by colour."""
    found = {}
    for patch in figure.axes[0].patches:
        if hasattr(patch, "get_height") and patch.get_x() >= 0 and patch.get_y() >= 0:
            box = (patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height())
            found.setdefault(to_hex(patch.get_facecolor()), []).append(box)
    return list(found.values())


def test_levels_of_memory_with_sizes_and_bandwidths(tmp_path):
    figure = plot_memory_hierarchy()
    on_sms = {f"registers\n{108 * 256 * 1024 / 1e6:.1f} MB", f"shared memory, L1\n{108 * 192 * 1024 / 1e6:.1f} MB"}
    assert on_sms | {"L2 cache\n40 MB", "GPU memory (HBM)\n80 GB", "2.04 TB/s", "19.5 TB/s"} <= set(texts(figure))
    widths = [patch.get_width() for patch in figure.axes[0].patches]
    assert widths == sorted(widths) and len(widths) == 5
    saved(figure, tmp_path)


def test_tiles_cover_the_scores(tmp_path):
    figure = plot_attention_tiles(100, 160, 64, 64)
    (tiles,) = kinds(figure)
    assert len(tiles) == 6 and sum(width * height for *_, width, height in tiles) == 100 * 160
    assert (128, 64, 32, 36) in tiles, "the last tile is smaller"
    saved(figure, tmp_path)


def test_causal_tiles_are_computed_masked_or_skipped():
    computed, masked, skipped = kinds(plot_attention_tiles(128, 192, 64, 64, is_causal=True))
    assert sorted(computed) == [(0, 0, 64, 64), (0, 64, 64, 64), (64, 64, 64, 64)]
    assert sorted(masked) == [(64, 0, 64, 64), (128, 64, 64, 64)]
    assert skipped == [(128, 0, 64, 64)]


@pytest.mark.parametrize(
    "sizes, is_causal, message",
    [
        ((0, 4, 1, 1), False, "L_q: expected at least 1"),
        ((4, 4, 1, 0), False, "tile_kv"),
        ((9, 4, 2, 2), True, "L_q <= L_kv"),
        ((4096, 4096, 16, 16), False, "at most 4096"),
    ],
)
def test_tiles_refuse(sizes, is_causal, message):
    with pytest.raises(ValueError, match=message):
        plot_attention_tiles(*sizes, is_causal=is_causal)


def test_the_online_softmax_ends_at_the_sum_of_the_row(tmp_path):
    figure = plot_online_softmax([0.0, 1.0, 3.0, 2.0, 1.0], chunk=2)
    top, bottom = figure.axes
    assert [line.get_ydata()[0] for line in top.lines if line.get_linestyle() == "-"] == [1, 3, 3]
    bars = [(bar.get_y(), bar.get_height()) for bar in bottom.patches]
    assert bars[-1][0] + bars[-1][1] == pytest.approx(1 + 0.3679 + 2 * 0.1353 + 0.0498, abs=1e-3)
    assert [text.get_text() for text in bottom.texts] == ["l times 0.14", "l times 1"]
    saved(figure, tmp_path)


@pytest.mark.parametrize("values, chunk", [([], 1), ([1.0, float("nan")], 1), ([1.0], 0)])
def test_the_online_softmax_refuses(values, chunk):
    with pytest.raises(ValueError, match=r"\[plots\]"):
        plot_online_softmax(values, chunk)


def test_a_decoder_layer_with_its_sizes(tmp_path):
    figure = plot_decoder_layer(GEMMA3_270M_CONFIG)
    seen = texts(figure)
    assert {"q_proj\n640 to 4 x 256", "k_proj\n640 to 1 x 256", "o_proj\n1024 to 640"} <= set(seen)
    assert {"gate_proj\n640 to 2048", "down_proj\n2048 to 640"} <= set(seen)
    assert "attention\n4 query heads,\n1 key/value head" in seen
    assert sum("norm" in text and text != "RMSNorm" for text in seen) == 6, "four around the halves, two of q and k"
    saved(figure, tmp_path)


@pytest.mark.parametrize("change", [{"head_dim": 0}, {"hidden_size": -1}])
def test_a_decoder_layer_has_sizes(change):
    with pytest.raises(ValueError, match=f"positive '{next(iter(change))}'"):
        plot_decoder_layer({**GEMMA3_270M_CONFIG, **change})
    with pytest.raises(ValueError, match="positive 'head_dim', got None"):
        plot_decoder_layer({name: size for name, size in GEMMA3_270M_CONFIG.items() if name != "head_dim"})
