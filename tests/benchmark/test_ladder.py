"""`rooflab bench`: which rungs it times."""

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
    assert len(ladder.bench_case(*case, every_rung=True, turns=1)) == len(rl.variants("softmax", "cpu")) + 1


def test_long_calls_get_few_turns(monkeypatch):
    monkeypatch.setattr(ladder, "_LONG_MS", 0)
    turns = []
    monkeypatch.setattr(ladder, "_turn", lambda call, calls, device: turns.append(1) or 1.0)
    rows = ladder.bench_case(all_specs()["gelu"], "small", "float32", ((64, 64),), {}, "cpu", every_rung=True)
    assert len(turns) == (1 + ladder._FEW_TURNS) * len(rows)
