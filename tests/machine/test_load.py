"""How much CPU other programs take, computed from planted CPU times."""

import os

import pytest

from rooflab.machine.load import CpuTimes, Load, between, read


@pytest.fixture
def two_cpus(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)  # Linux alone has it
    monkeypatch.setattr(os, "sysconf", lambda name: 100)


def test_the_cpus_that_the_process_may_use_are_added(two_cpus, tmp_path):
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  9 9 9 9 9 9 9 9 9 9\n"
        "cpu0 100 20 30 5000 70 3 2 40 60 0\n"
        "cpu1 200 0 0 5000 0 0 0 10 0 0\n"
        "cpu2 7777 0 0 0 0 0 0 0 0 0\n"
        "intr 5 6 7\n",
        encoding="utf-8",
    )
    found = read(stat)
    assert (found.busy, found.stolen, found.cpus) == pytest.approx((3.55, 0.5, 2))
    assert found.own > 0 and found.at > 0


@pytest.mark.parametrize("text", ["", "intr 5\n", "cpu0 0 0 0 0 0 0 0 0 0 0\n"])
def test_a_system_that_does_not_tell(two_cpus, tmp_path, text):
    (tmp_path / "stat").write_text(text, encoding="utf-8")
    assert read(tmp_path / "stat") is None and read(tmp_path / "absent") is None


def test_own_work_is_no_load():
    start = CpuTimes(at=10.0, busy=100.0, stolen=1.0, own=5.0, cpus=2)
    assert between(start, CpuTimes(12.0, 104.0, 1.0, 9.0, 2)) == Load(0.0, 0.0, 2)
    assert between(start, CpuTimes(12.0, 104.0, 2.0, 5.0, 2)) == Load(2.0, 0.5, 2)
    assert between(start, CpuTimes(12.0, 103.0, 1.0, 9.0, 2)).others == 0.0  # clock ticks are coarse
    assert between(None, start) is None and between(start, None) is None and between(start, start) is None
