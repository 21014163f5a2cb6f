"""`rooflab bench`: which cases it runs, and what it writes. Nothing is timed."""

import datetime
import json

import pytest

import rooflab as rl
from rooflab.benchmark.ladder import Row
from rooflab.cli import bench, main
from rooflab.specs import all_specs


@pytest.fixture
def asked(monkeypatch):
    """Made-up rows instead of measurements; what was asked for is listed."""
    calls = []

    def bench_case(spec, label, dtype, shapes, kwargs, device, **options):
        calls.append((spec.name, f"{label} {dtype}", options))
        return [Row(spec.name, label, dtype, "v1_simd", 1.0, 1.0, 1.0, 1.0, 1.0, {})]

    monkeypatch.setattr(bench, "bench_case", bench_case)
    return calls


def test_all_is_what_the_tables_show_and_nothing_else(asked):
    assert main(["bench", "all", "--device", "cpu"]) == 0
    wanted = {(name, case) for name, spec in all_specs().items() for case in spec.tables.get("cpu", ())}
    assert {(op, case) for op, case, _ in asked} == wanted
    assert all(options["every_rung"] and options["longest_s"] < 60 for *_, options in asked)


def test_the_file_says_where_its_rows_come_from(asked, tmp_path):
    path = tmp_path / "here.json"
    assert main(["bench", "gelu", "softmax", "--device", "cpu", "--case", "640 float32", "--json", str(path)]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    machine = found["machine"]
    assert machine["kind"] == "cpu" and machine["threads"] == rl.num_threads() and machine["isa"] == rl.cpu_isa()
    assert machine["name"] and "host" not in machine
    assert datetime.date.fromisoformat(found["date"])
    assert found["version"] == rl.__version__ and found["peer"] is None
    assert [(r["op"], r["case"], r["contender"]) for r in found["rows"]] == [
        ("gelu", "32768x640", "v1_simd"),
        ("softmax", "32768x640", "v1_simd"),
    ]
    assert not any(options["every_rung"] for *_, options in asked)


def test_another_device_is_one_sentence(asked, capsys):
    assert main(["bench", "gelu", "--device", "tpu"]) == 2
    assert "expected cpu, cuda or cuda:N" in capsys.readouterr().err and asked == []
