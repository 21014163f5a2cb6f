"""Calls over their sizes: what is timed of each kind, and how results are kept."""

import dataclasses

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark import calls, lm_results
from rooflab.benchmark.calls import Call, CallResult
from rooflab.benchmark.lm import OUT_OF_MEMORY, Case, Result

H200 = rl.meta("H200")
HERE = lm_results.Origin({"kind": "cpu", "name": "A CPU"}, "1.0")


def attention(version, L, d=64, device=H200):
    return Call("attention", version, (("L", L), ("d", d)), device)


def test_attention_keeps_what_each_version_has_to():
    B, L, d = calls.BATCH, 1024, 64
    rows, scores = 4 * B * L * d, 4 * B * L * L
    beside = rl.empty(10**6, device=H200)
    held = {version: calls.measure(attention(version, L, d)).figures["held_bytes"] for version in calls.ATTENTION}
    assert held["flash"] == 5 * rows + 2 * 4 * B * L, "q, k, v, dO, the output and two numbers a query"
    assert beside.nbytes == 4 * 10**6, "what is held before does not count"
    assert held["written out"] // scores == 3 and held["compiled"] // scores <= 3


def test_written_out_attention_is_attention():
    q, k, v = (rl.randn(2, 12, 8) for _ in "qkv")
    ours, library = calls.written_out(q, k, v), rl.attention(q, k, v)
    np.testing.assert_allclose(ours.numpy(), library.numpy(), rtol=1e-5, atol=1e-6)


def test_modelled_times_follow_the_roofline():
    product = calls.measure(Call("product", "", (("N", 4096),), H200)).figures
    assert product["ms"] == pytest.approx(2 * 4096**3 / 67e12 * 1e3, rel=1e-3)
    assert product["peak_bytes"] == 3 * 4 * 4096**2
    first, twice = (calls.measure(mlp(steps=steps)).figures["ms"] for steps in (2, 4))
    assert twice == pytest.approx(2 * first, rel=0.01)
    passes = calls.measure(attention("flash", 4096)).figures
    assert passes["backward_ms"] > 2 * passes["forward_ms"] > 0


def mlp(device=H200, **grown):
    return Call("mlp", "", tuple(({"dim": 256, "layers": 4, "batch": 256, "steps": 2} | grown).items()), device)


def test_an_mlp_runs_forward_and_backward():
    with rl.count() as counted:
        calls.measure(mlp())
    assert counted.macs == 2 * 256**3 * (3 * 4 - 1) * 2, (
        "two runs: what compiles on its first call, and the one profiled"
    )


def test_times_here_are_those_of_latency(monkeypatch):
    asked = []

    def latency(function, **options):
        asked.append((function().shape, options))
        return Result(Case(), samples_ms=(7.0,))

    monkeypatch.setattr(rl, "latency", latency)
    assert calls.measure(Call("product", "", (("N", 32),), "cpu")).figures["ms"] == 7.0
    assert asked == [((32, 32), {"warmup": calls.WARMUP, "repeat": 5})] and calls.repeats("cuda:1") == 100


def test_what_does_not_fit_is_a_result_and_leaves_nothing():
    device = rl.meta("A100 SXM 40GB")
    before = rl.memory.allocated(device)
    result = calls.measure(attention("written out", 32768, device=device))
    assert (result.status, result.figures) == (OUT_OF_MEMORY, {}) and "out of memory (modelled)" in str(result)
    assert calls.measure(attention("flash", 32768, device=device)).status == "ok"
    assert rl.memory.allocated(device) == before


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="expected one of attention, product, mlp, got 'sort'"):
        calls.measure(Call("sort"))


def test_calls_stand_beside_rows_in_a_file(tmp_path):
    path = tmp_path / "rows.json"
    results, row = (
        [CallResult(attention("flash", 256), figures={"forward_ms": 1.5}), CallResult(mlp(), OUT_OF_MEMORY)],
        [Result(Case(), samples_ms=(1.0,))],
    )
    assert lm_results.load_calls(path, HERE) == []
    lm_results.save_calls(path, results, HERE)
    lm_results.save(path, row, HERE)
    assert lm_results.load_calls(path, HERE) == results and lm_results.load(path) == (row, HERE)
    again = dataclasses.replace(results[0], figures={"forward_ms": 1.25})
    lm_results.save_calls(path, [again], HERE)
    assert lm_results.load_calls(path, HERE) == [again, results[1]] and lm_results.load(path)[0] == row
    with pytest.raises(ValueError, match="holds rows of another run"):
        lm_results.load_calls(path, dataclasses.replace(HERE, version="2"))
