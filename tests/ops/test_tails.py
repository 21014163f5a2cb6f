"""Sizes at which kernels cut their work, and one beside: no rung leaves a rest out, in any instruction set."""

import re
from pathlib import Path

import numpy as np
import pytest
from ops.samples import SPECS, check_rungs

from rooflab.specs._tiles import TILES

SOURCES = Path(__file__).resolve().parents[2] / "csrc" / "kernels"


def value(text):
    """Of a constant as C++ writes it: a number, a shift, or what AVX-512 gets of two."""
    text = re.sub(r".*== 64 \? (\d+) : \d+", r"\1", text).replace("int64_t{1}", "1").strip()
    return eval(text, {"__builtins__": {}})


@pytest.mark.parametrize(("source", "name"), [(source, name) for source in TILES for name in TILES[source]])
def test_tiles_are_those_of_the_sources(source, name):
    found = re.findall(rf"\b{name} = ([^,;]+)[,;]", (SOURCES / source).read_text(encoding="utf-8"))
    assert value(found[0]) == TILES[source][name]


def cases():
    for name, spec in SPECS.items():
        if spec.tails:
            for dtype in (dtype for dtype in spec.dtypes if dtype not in spec.composed_dtypes):
                yield pytest.param(name, dtype, id=f"{name}-{dtype}")


@pytest.mark.parametrize(("name", "dtype"), list(cases()))
def test_no_rest_is_left_out(name, dtype, device):
    for sample in SPECS[name].tails(np.random.default_rng(0)):
        check_rungs(SPECS[name], dtype, sample, device, "contiguous")
