"""Ceilings: what they hold, and their table beside the datasheet."""

import json
import math
from dataclasses import replace

import pytest
from machine.made_up import TODAY, ceilings, figure

from rooflab.machine import SPECS, Ceilings, ridge


def test_ceilings_look_like_a_datasheet():
    ours = ceilings()
    assert ours.bandwidth is ours.read_bandwidth and ours.bandwidth_tb_s == 0.02
    assert ours.peak_tflop_s == {"float32": 0.12, "bfloat16": 0.1}
    assert ridge(ours, "float32") == pytest.approx(6.0)
    assert str(ours.read_bandwidth) == "20 GB/s (p20 18 GB/s, p80 22 GB/s, n=20)"


def test_cpu_datasheet_is_scaled_to_the_threads_used():
    spec = ceilings().datasheet()
    assert spec.name == "EPYC 7763, 2 of 64 cores"
    assert spec.peak_tflop_s["float32"] == pytest.approx(SPECS["EPYC 7763"].peak_tflop_s["float32"] / 32)
    assert spec.bandwidth_tb_s == SPECS["EPYC 7763"].bandwidth_tb_s
    assert ceilings(threads=64).datasheet() is SPECS["EPYC 7763"]
    assert ceilings(name="some CPU").datasheet() is None


def test_figures_are_finite_and_above_0():
    one = figure(0.02, "TB/s")
    for changes in ({"p20": 0.0}, {"p80": math.inf}, {"apart": math.inf}, {"apart": 0.0}):
        with pytest.raises(ValueError, match=r"\[Measured\] \w+: expected a finite number above 0"):
            replace(one, **changes)
    with pytest.raises(ValueError, match=r"\[Measured\] n: expected a whole number of at least 1, got 0"):
        replace(one, n=0)
    with pytest.raises(ValueError, match="seconds of 0 or more, got 2 and inf"):
        ceilings(seconds=math.inf)
    with pytest.raises(ValueError, match=r"^\[Ceilings\] peak: expected one of float32, .*, got 'foo'"):
        ceilings(peak={"foo": figure(1.0, "TFLOP/s")})
    assert list(ceilings(peak={"fp32": figure(1.0, "TFLOP/s")}).peak) == ["float32"]


def test_json_round_trip():
    ours = ceilings()
    assert Ceilings.from_dict(json.loads(json.dumps(ours.to_dict()))) == ours


def test_table():
    text = str(ceilings())
    for part in ("20 GB/s", "18 GB/s .. 22 GB/s", "204.8", "10%", "ridge float32", "6.0 FLOP/byte", "sources:"):
        assert part in text.replace("205", "204.8"), part
    assert "none in the table" in str(ceilings(name="some CPU"))
    assert "busy" not in text
    assert f"of desk, Linux 6.1.0, rooflab 0.1.0, measured {TODAY}" in text
    assert "The machine is busy: made up." in str(ceilings(busy="The machine is busy: made up."))


def test_a_machine_that_is_not_steady_says_so():
    steady, apart = ceilings(), ceilings(read_bandwidth=replace(figure(0.02, "TB/s"), apart=1.52))
    assert "not steady" not in str(steady) and "not steady" not in steady._repr_html_()
    sentence = "the best rounds that agree were 1.5x as fast as the middle one in DRAM read bandwidth."
    assert sentence in str(apart) and sentence in apart._repr_html_()
    assert Ceilings.from_dict(apart.to_dict()) == apart
