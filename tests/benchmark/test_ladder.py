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
