"""`rooflab machine`: what it prints and writes, and one sentence for what it cannot do."""

import json
import warnings

import pytest
from machine.made_up import ceilings

import rooflab as rl
from rooflab.cli import machine, main
from rooflab.machine import BusyMachineWarning


@pytest.fixture
def asked(monkeypatch):
    """Made-up ceilings instead of a measurement, and a list of what was asked for."""
    calls = []

    def measure(device, refresh, progress):
        calls.append((device, refresh))
        progress("round 1")
        return ceilings()

    monkeypatch.setattr(machine, "measure", measure)
    return calls


def test_the_version_is_the_packages(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"rooflab {rl.__version__}\n"


def test_table_json_and_plot(asked, tmp_path, capsys):
    assert main(["machine", "--json", str(tmp_path / "m.json"), "--plot", str(tmp_path / "m.png")]) == 0
    said = capsys.readouterr()
    assert "DRAM copy bandwidth" in said.out and said.err == ""
    report = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert report["measured"]["threads"] == 2 and report["datasheet"]["cores"] == 64
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert main(["machine", "--refresh", "--device", "cuda"]) == 0
    assert asked == [("cpu", False), ("cuda", True)]


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(option, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(machine, "measure", None)
    for path in (tmp_path, tmp_path / "absent" / "m.json"):
        assert main(["machine", option, str(path)]) == 2
        assert capsys.readouterr().err == f"rooflab machine: no file can be written: {str(path)!r}\n"


def test_a_busy_machine_is_said_once(monkeypatch, capsys):
    def measure(device, refresh, progress):
        warnings.warn("busy", BusyMachineWarning, stacklevel=2)
        return ceilings(busy="The machine is busy: made up.")

    monkeypatch.setattr(machine, "measure", measure)
    with warnings.catch_warnings(record=True) as seen:
        assert main(["machine"]) == 0
    assert capsys.readouterr().out.count("busy") == 1 and seen == []
