"""Code compiled for one instruction set must not leak into what every CPU runs."""

import subprocess
from pathlib import Path

import pytest

import rooflab as rl

BUILD = Path(__file__).resolve().parents[2] / "build"
ABOVE = ["isa_avx*", "isa_neon_*"]  # what not every processor runs


def test_simd_objects_define_no_weak_functions():
    """The linker keeps one copy of a weak function (inline, a template) for all: it must not be such an object's."""
    objects = sorted(path for isa in ABOVE for path in BUILD.glob(f"*/csrc/CMakeFiles/{isa}.dir/**/*.o"))
    if not objects:
        pytest.skip("no build folder beside the tests")
    weak = {}
    for path in objects:
        listing = subprocess.run(
            ["nm", "-C", "--defined-only", path], check=True, capture_output=True, text=True
        ).stdout
        if found := [line.split(" ", 2)[2] for line in listing.splitlines() if line.split(" ", 2)[1] == "W"]:
            weak[path.name] = found
    assert weak == {}


def test_the_instruction_set_in_use_is_known(isas):
    assert rl.cpu_isa() in isas
    assert rl.num_threads() >= 1
    with pytest.raises(ValueError, match="threads"):
        rl.set_num_threads(0)


def test_a_lower_instruction_set_can_be_set(set_isa, isas):
    lowest, best = isas[0], rl.cpu_isa()
    set_isa(lowest)
    with pytest.raises(ValueError, match="does not accept these operands"):
        a = rl.ones(2, 2, dtype="bfloat16")
        rl.matmul(a, a, variant="v4_bf16_dot")
    for isa in ["sse2", "", *isas[isas.index(best) + 1 :]]:
        with pytest.raises(ValueError, match=rf"\[set_cpu_isa\] isa: expected one of {lowest}.*{best}.*got \"{isa}\""):
            rl.set_cpu_isa(isa)
    assert rl.cpu_isa() == lowest
