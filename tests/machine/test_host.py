"""What Linux and macOS tell of a machine, each in its own way."""

import os

import pytest

from rooflab.machine import host

X86 = "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor\nflags\t: fpu\n"
ARM = "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"
LSCPU = "Architecture:             aarch64\nVendor ID:                ARM\n  Model name:             Neoverse-V2\n"
TOLD = {
    ("lscpu",): LSCPU,
    ("sysctl", "-n", "machdep.cpu.brand_string"): "Apple M2",
    ("sysctl", "-n", "hw.perflevel0.l2cachesize"): "16777216",
}


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(host, "told", lambda *command: TOLD.get(command, ""))


@pytest.mark.parametrize(("report", "name"), [(X86, "AMD EPYC 7763 64-Core Processor"), (ARM, "Neoverse-V2")])
def test_the_cpus_name_on_linux(told, tmp_path, report, name):
    (tmp_path / "cpuinfo").write_text(report, encoding="utf-8")
    assert host.cpu_name(tmp_path / "cpuinfo") == name


def test_a_mac(told, tmp_path):
    assert host.cpu_name(tmp_path / "absent") == "Apple M2"
    assert host.cpu_cache_bytes(tmp_path / "absent") == 16 * 2**20


def test_a_system_that_tells_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(host, "told", lambda *command: "")
    monkeypatch.setattr(host.platform, "processor", lambda: "arm")
    assert host.cpu_name(tmp_path / "absent") == "arm"
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert host.allowed_cpus() == set(range(os.cpu_count()))
    assert host.told("/absent") == "" and host.clock_seconds("?") == 0


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:00.03", 0.03), ("12:34.56", 754.56), ("01:02:03", 3723), ("2-03:04:05", 183845)]
)
def test_the_clock_of_ps(text, seconds):
    assert host.clock_seconds(text) == pytest.approx(seconds)
