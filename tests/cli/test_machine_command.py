"""`rooflab machine`: what it prints and writes, and one sentence for what it cannot do."""

import json

import pytest
from machine.made_up import ceilings

from rooflab.cli import machine, main


@pytest.fixture
def asked(monkeypatch):
    """Made-up ceilings instead of a measurement; what was asked for is listed."""
    calls = []

    def measure(device, refresh):
        calls.append((device, refresh))
        return ceilings()

    monkeypatch.setattr(machine, "measure", measure)
    return calls


def test_table_json_and_plot(asked, tmp_path, capsys):
    assert main(["machine", "--json", str(tmp_path / "m.json"), "--plot", str(tmp_path / "m.png")]) == 0
    assert "DRAM copy bandwidth" in capsys.readouterr().out
    report = json.loads((tmp_path / "m.json").read_text())
    assert report["measured"]["threads"] == 2 and report["datasheet"]["cores"] == 64
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    assert main(["machine", "--refresh", "--device", "cuda"]) == 0
    assert asked == [("cpu", False), ("cuda", True)]


def test_it_says_what_is_wrong(asked, tmp_path, capsys):
    assert main(["machine", "--json", str(tmp_path / "absent" / "m.json")]) == 2
    assert "absent" in capsys.readouterr().err
