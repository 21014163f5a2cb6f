"""`rooflab bench`: which rungs it times, and what its figures are made of."""

from types import SimpleNamespace

import numpy as np
import pytest

import rooflab as rl
from rooflab.benchmark import ladder
from rooflab.specs import all_specs


@pytest.mark.parametrize("op, shapes", [("add", ((64, 64),) * 2), ("attention", ((1, 2, 64, 32),) * 3)])
def test_the_fastest_rung_is_timed_even_where_all_are_called_slow(monkeypatch, op, shapes):
    monkeypatch.setattr(ladder, "_SLOW_FLOPS", {"cpu": 0})
    slow = [rung for rung in rl.variants(op, "cpu") if rung.name.startswith(("v0_", "v1_"))]
    monkeypatch.setattr(rl, "variants", lambda op, device: slow)
    rows = ladder.bench_case(all_specs()[op], "small", "float32", shapes, {}, "cpu", turns=1)
    assert [row.contender for row in rows if row.contender != "copy"] == ["v1_staged" if op == "add" else "v1_flash"]


def test_a_rung_that_takes_too_long_is_left_out_but_never_the_fastest():
    case = all_specs()["softmax"], "small", "float32", ((64, 64),), {}, "cpu"
    rows = ladder.bench_case(*case, every_rung=True, longest_s=0, turns=1)
    assert [row.contender for row in rows] == ["v2_one_pass", "copy"]
    rows = ladder.bench_case(*case, every_rung=True, turns=1)
    rungs = [rung.name for rung in rl.variants("softmax", "cpu") if rung.name != "v4_columns"]  # which takes no rows
    assert [row.contender for row in rows] == [*rungs, "copy"]


def test_a_rung_is_timed_however_much_faster_copies_are(monkeypatch):
    times = {rung.name: [1000.0] * 5 for rung in rl.variants("softmax", "cpu")} | {"copy": [1.0] * 5}
    rows = rows_of(monkeypatch, "softmax", ((64, 64),), times)
    assert rows["v2_one_pass"].ratios["copy"] == (0.001, 0.001, 0.001)


def test_long_calls_get_few_turns(monkeypatch):
    monkeypatch.setattr(ladder, "_LONG_MS", 0)
    turns = []
    monkeypatch.setattr(ladder, "_turn", lambda call, calls, device: turns.append(1) or 1.0)
    rows = ladder.bench_case(all_specs()["gelu"], "small", "float32", ((64, 64),), {}, "cpu", every_rung=True)
    assert len(turns) == (1 + ladder._FEW_TURNS) * len(rows)


class Contender:
    """A call whose turns take given times, in milliseconds. The two warm-up turns take as long as the first."""

    def __init__(self, call, ms):
        self.call, self.turns = call, iter([ms[0], ms[0], *ms])

    def __call__(self):
        self.call()


def rows_of(monkeypatch, op, shapes, ms):
    """The rows, by contender, of a run in which each turn takes the next of `ms`, in milliseconds per call."""
    case = all_specs()[op], "small", "float32", shapes, {}, "cpu"
    contenders = ladder._contenders

    def named(*args):
        return {name: Contender(call, ms[name]) for name, call in contenders(*args).items()}

    monkeypatch.setattr(ladder, "_contenders", named)
    monkeypatch.setattr(ladder, "_IDLE_S", 0)
    monkeypatch.setattr(ladder, "_turn", lambda call, calls, device: next(call.turns))
    return {row.contender: row for row in ladder.bench_case(*case, turns=5)}


def test_figures_are_those_of_the_samples(monkeypatch):
    ms = {"v2_one_pass": [1.0, 2.0, 4.0, 8.0, 16.0], "copy": [2.0, 2.0, 2.0, 2.0, 2.0]}
    rows = rows_of(monkeypatch, "softmax", ((64, 64),), ms)
    ours, copy, n = rows["v2_one_pass"], rows["copy"], 64 * 64
    assert (ours.median_ms, ours.p20_ms, ours.p80_ms) == pytest.approx((4.0, 1.8, 9.6))
    assert ours.tflop_s == pytest.approx(5 * n / 4e-3 / 1e12) and ours.gb_s == pytest.approx(8 * n / 4e-3 / 1e9)
    assert copy.median_ms == 2.0 and copy.ratios == {}
    assert ours.ratios["copy"] == pytest.approx((0.5, *np.percentile([2, 1, 0.5, 0.25, 0.125], [20, 80])))


def test_products_count_two_flops_a_mac(monkeypatch):
    times = dict.fromkeys([v.name for v in rl.variants("matmul", "cpu")], [1.0] * 5)
    rows = rows_of(monkeypatch, "matmul", ((128, 128), (128, 128)), times)
    assert {row.tflop_s for row in rows.values()} == {2 * 128**3 / 1e-3 / 1e12}


def test_a_turn_is_the_time_of_one_of_its_calls(monkeypatch):
    now = [0]
    monkeypatch.setattr(ladder, "time", SimpleNamespace(perf_counter_ns=lambda: now[0]))
    assert ladder._turn(lambda: now.__setitem__(0, now[0] + 3_000_000), 4, "cpu") == 3.0


def test_calls_take_turns_with_the_buffers():
    seen = []
    call = ladder._rotating(lambda x, scale: seen.append((x, scale)), [(1,), (2,), (3,)], {"scale": 5})
    for _ in range(4):
        call()
    assert seen == [(1, 5), (2, 5), (3, 5), (1, 5)]
