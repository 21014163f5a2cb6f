"""What Linux and macOS tell of a machine, each in its own way."""

import os

import pytest

from rooflab import host


def test_the_cache_of_a_mac(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "told", lambda *command: "16777216" * (command[0] == "sysctl"))
    assert host.cpu_cache_bytes(tmp_path / "absent") == 16 * 2**20


def test_a_system_that_tells_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "told", lambda *command: "")
    assert host.cpu_cache_bytes(tmp_path / "absent") == 32 * 2**20
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert host.allowed_cpus() == set(range(os.cpu_count()))
    assert host.told("/absent") == "" and host.clock_seconds("?") == 0


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:00.03", 0.03), ("12:34.56", 754.56), ("01:02:03", 3723), ("2-03:04:05", 183845)]
)
def test_the_clock_of_ps(text, seconds):
    assert host.clock_seconds(text) == pytest.approx(seconds)
