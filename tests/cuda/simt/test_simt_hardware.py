"""Counts of small kernels beside those that Nsight Compute read from a GPU: the same, to the last sector."""

import json
from pathlib import Path

import pytest
from micro_kernels import MICROS

import rooflab as rl

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "hardware.json").read_text(encoding="utf-8"))["kernels"]
KINDS = ("global_loads", "global_stores", "shared_loads", "shared_stores")
# A GPU's division and exponential are additions and multiplications of their own, which nobody wrote.
WITH_FUNCTIONS = {"softmax_of_a_warp"}


@pytest.fixture(scope="module")
def modules():
    """The module of each kernel: they are compiled a few at a time, as their shared arrays have room together."""
    names, made = list(MICROS), {}
    for first in range(0, len(names), 16):
        part = names[first : first + 16]
        made |= dict.fromkeys(part, rl.cuda.compile("".join(MICROS[name].source for name in part), backend="simt"))
    return made


def of_hardware(measured):
    """What was measured, in the words of KernelCounts. The GPU's bytes are the distinct ones."""
    found = {key: measured[key] for key in measured if key.split(".")[0] in KINDS}
    found["global_atomics.requests"] = measured["atomics.atom"] + measured["atomics.red"]
    found["global_atomics.sectors"] = measured["atomics.atom_sectors"] + measured["atomics.red_sectors"]
    found["shared_atomics.requests"] = measured["shared_atomics.requests"]
    found["barriers"] = measured["barriers"]
    found["flops"] = 2 * measured["flops.fma"] + measured["flops.add"] + measured["flops.mul"]
    return found


def of_counts(counts, names):
    def value(name):
        whole, _, part = name.partition(".")
        found = getattr(counts, whole)
        return getattr(found, part.replace("bytes", "distinct_bytes")) if part else found

    return {name: value(name) for name in names}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("name", MICROS)
def test_it_is_what_the_hardware_counts(name, modules):
    micro = MICROS[name]
    arrays = [array.copy() for array in micro.arrays]
    counts = modules[name][micro.name](micro.grid, micro.block, *arrays, mode="count").counts
    expected = of_hardware(GOLDEN[name]["-O0"])
    if name in WITH_FUNCTIONS:
        assert expected.pop("flops") > counts.flops
    assert of_counts(counts, expected) == expected


def test_the_optimised_build_asks_for_no_more_but_where_a_loop_is_unrolled():
    """What the docs of KernelCounts say of an optimised build, also if another card or compiler is recorded: ptxas -O3
    joins shared loads into wider ones, and unrolls a loop whose lanes leave it at different times.
    """
    other = {}
    for name, measured in GOLDEN.items():
        plain, fast = of_hardware(measured["-O0"]), of_hardware(measured["-O3"])
        other |= {(name, key): (plain[key], fast[key]) for key in plain if plain[key] != fast[key] and key != "flops"}
    assert all(fast < plain for (name, _), (plain, fast) in other.items() if name != "trips_of_lanes")
    assert other["matmul_tiled", "shared_loads.requests"] == (16_384, 10_240)
    assert {name for name, _ in other} == {"add_to_one", "matmul_tiled", "trips_of_lanes"}


def test_every_kernel_was_measured():
    assert list(GOLDEN) == list(MICROS)
