"""Sizes at which kernels split their work, and their neighbours: no rung leaves a tail out, in any instruction set."""

import re
from pathlib import Path

import numpy as np
import pytest
from ops.samples import SPECS, Expected

from rooflab.specs import _tiles
from rooflab.specs._tiles import TILES

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "csrc" / "kernels"


def value(text):
    """The value of a constant as C++ writes it: a number, a shift, or AVX-512's of several."""
    text = re.sub(r".*?== 64 \? (\d+) : .*", r"\1", text).replace("int64_t{1}", "1").strip()
    return eval(text, {"__builtins__": {}})


@pytest.mark.parametrize(("source", "name"), [(source, name) for source in TILES for name in TILES[source]])
def test_tiles_are_those_of_the_sources(source, name):
    found = re.findall(rf"\b{name} = ([^,;]+)[,;]", (SOURCES / source).read_text(encoding="utf-8"))
    assert value(found[0]) == TILES[source][name]


def test_every_tile_is_used():
    files = [*(ROOT / "python" / "rooflab" / "specs").glob("*.py"), *Path(__file__).parent.glob("*.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in files if path.name != "_tiles.py")
    used = {(getattr(_tiles, source), name) for source, name in re.findall(r'\btile\(([A-Z]\w*), "(\w+)"\)', text)}
    assert used == {(source, name) for source in TILES for name in TILES[source]}


LONG = {"attention": "float32", "attention_backward": "bfloat16", "matmul": "float32"}
LONG |= {
    "layer_norm_backward": "float32",
    "rms_norm_backward": "bfloat16",
}  # and the type that runs without --all-tests


def cases(device):
    """(name, dtype) as test parameters; on a CPU, float32 and bfloat16 in turns. The others run with --all-tests."""
    for place, (name, spec) in enumerate(SPECS.items()):
        if spec.tails:
            for dtype in (dtype for dtype in spec.dtypes if dtype not in spec.composed_dtypes):
                quick = LONG.get(name, ("float32", "bfloat16")[place % 2])
                marks = [pytest.mark.slow] * (dtype != quick and device == "cpu")
                yield pytest.param(name, dtype, id=f"{name}-{dtype}", marks=marks)


@pytest.mark.usefixtures("two_threads")  # which share the work
@pytest.mark.parametrize(("name", "dtype"), list(cases("cpu")))
@pytest.mark.slow(
    id=[
        "matmul-float32",
        "attention_backward-bfloat16",
        "rms_norm_backward-bfloat16",
        "attention-float32",
        "layer_norm_backward-float32",
    ]
)
def test_no_rest_is_left_out(name, dtype, instruction_sets):
    for sample in SPECS[name].tails(np.random.default_rng(0)):
        expected = Expected(SPECS[name], dtype, sample)
        for _ in instruction_sets():
            expected.check("cpu")


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "dtype"), list(cases("cuda")))
def test_no_rest_is_left_out_on_a_gpu(name, dtype):
    for sample in SPECS[name].tails(np.random.default_rng(0)):
        Expected(SPECS[name], dtype, sample).check("cuda")
