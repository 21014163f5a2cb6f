"""The figure of a model's cost: bars, places under the roof, names. How it looks was judged by eye."""

import numpy as np
import pytest
from machine.made_up import ceilings
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.text import Text
from plots.figures import saved, texts

import rooflab as rl
from rooflab.cost import Convention
from rooflab.plots import plot_model_cost
from rooflab.plots.style import COLORS
from rooflab.units import human

CASES = [
    {"model": "llama3-8b", "length": 4096, "mode": "decode", "batch": 16, "hardware": "H100"},
    {"model": "mixtral-8x7b", "length": 4096, "batch": 4, "hardware": "H200"},
    {"model": "gpt2-xl", "length": 1024, "mode": "training", "attention": "composed", "hardware": "A100"},
    {"model": "gpt2", "length": 100, "hardware": "T4", "convention": Convention.ANALYSIS},
    {"model": "gemma3-270m", "length": 1, "mode": "decode", "dtype": "float32", "hardware": ceilings()},
]


def cost(model, **asked):
    return rl.cost.model(model, **asked)


@pytest.mark.parametrize("asked", CASES, ids=lambda asked: asked["model"])
@pytest.mark.slow(id=["gpt2", "mixtral-8x7b", "gpt2-xl"])
def test_every_part_has_its_bar_and_its_place(asked, tmp_path):
    found = cost(**asked)
    figure = found.plot()
    bars, roofline = figure.axes
    assert [label.get_text() for label in bars.get_yticklabels()] == [part.name for part in found.parts]
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([part.seconds for part in found.parts])
    for bar, part in zip(bars.patches, found.parts, strict=True):
        expected = {"memory": COLORS[0], "compute": COLORS[1]}[part.bound]
        assert np.allclose(bar.get_facecolor()[:3], [int(expected[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    everything = sum(part.seconds for part in found.parts)
    labels = [text.get_text() for text in bars.texts]
    assert labels == [f"{human(p.seconds, 's')}, {p.seconds / everything:.1%}" for p in found.parts]
    marks = [marks for marks in roofline.collections if isinstance(marks, PathCollection)]
    peak, bandwidth = found.machine.peak_tflop_s[found.dtype] * 1e12, found.machine.bandwidth_tb_s * 1e12
    large = [part for part in found.parts if part.work.flops and part.seconds >= 0.005 * everything]
    large.sort(key=lambda part: -part.seconds)
    assert len(marks) == len(large)
    for mark, part in zip(marks, large, strict=True):
        intensity = part.work.arithmetic_intensity
        assert list(mark.get_offsets()[0]) == pytest.approx([intensity, min(peak, bandwidth * intensity)])
    areas = [mark.get_sizes()[0] for mark in marks]
    assert areas == sorted(areas, reverse=True) and areas[0] > areas[-1] > 0
    saved(figure, tmp_path)


@pytest.mark.slow
def test_names_do_not_cover_each_other():
    for asked in CASES:
        figure = cost(**asked).plot()
        figure.draw_without_rendering()
        renderer = FigureCanvasAgg(figure).get_renderer()
        boxes = [Text.get_window_extent(text, renderer) for text in figure.axes[1].texts]
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 + 1 for box in boxes)
        for index, box in enumerate(boxes):
            assert not any(box.padded(-1).overlaps(other.padded(-1)) for other in boxes[index + 1 :])


@pytest.mark.slow
def test_it_says_what_was_asked_and_by_which_roof():
    found = cost(**CASES[0])
    figure = found.plot()
    seen = " ".join(texts(figure))
    assert figure.get_suptitle() == found.title and "ridge 295 FLOP/byte" in seen and "memory binds" in seen
    assert f"whole pass, {found.total.work.arithmetic_intensity:.4g} FLOP/byte" in seen
    assert "compute binds" not in seen and "compute binds" in " ".join(texts(cost(**CASES[1]).plot()))
    assert plot_model_cost(found, title="Mine").get_suptitle() == "Mine"
    assert "measured" in " ".join(axes.get_title(loc="left") for axes in cost(**CASES[4]).plot().axes)


def test_what_has_no_times_is_refused():
    with pytest.raises(ValueError, match=r"^\[plots\] cost: it has no machine; give rl.cost.model a hardware$"):
        plot_model_cost(cost("gpt2", length=5))


def test_what_only_moves_data_does_not_stretch_the_roofline():
    cost = rl.cost.model("gpt2-xl", batch=64, length=1024, hardware="T4")
    cache = next(part for part in cost.parts if part.name == "KV cache")
    assert cache.work.arithmetic_intensity == 0 and cache.work.bytes > 0
    bars, roofline = plot_model_cost(cost).axes
    assert "KV cache" in [text.get_text() for text in bars.get_yticklabels()]
    assert not any("KV cache" in text.get_text() for text in roofline.texts)
    assert roofline.get_xlim()[0] > 1e-2
