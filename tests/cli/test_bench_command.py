"""`rooflab bench`: which cases it runs, and what it writes. Nothing is timed."""

import datetime
import json

import pytest

import rooflab as rl
from rooflab.benchmark import gemma3
from rooflab.benchmark.ladder import Row, cost_of
from rooflab.cli import bench, main
from rooflab.specs import all_specs


@pytest.fixture
def asked(monkeypatch):
    """Made-up rows instead of measurements, and a list of what was asked for."""
    calls = []

    def bench_case(spec, label, dtype, shapes, kwargs, device, **options):
        calls.append((spec.name, f"{label} {dtype}", options))
        return [Row(spec.name, label, dtype, "v1_simd", 1.0, 1.0, 1.0, 1.0, 1.0, {})]

    monkeypatch.setattr(bench, "bench_case", bench_case)
    return calls


WITHOUT_SPEC = (
    "arange linspace random attention_mask attention_repair kv_append gemma3_decode rms_norm_rope_append adamw "
    "matmul_bias matmul_float32 nonzero index_put scatter searchsorted ravel_index sum_squares scale_tensors"
)


def ladder(op, kind):
    return tuple(rung.kernel for rung in rl.variants(op, kind))


def test_all_is_every_ladder_and_what_the_tables_show(asked):
    assert main(["bench", "all", "--device", "cpu"]) == 0
    cases = {(op, case) for op, case, _ in asked}
    in_tables = {(name, case) for name, spec in all_specs().items() for case in spec.tables.get("cpu", ())}
    assert in_tables <= cases and not any(case.startswith("odd ") for _, case in cases)
    assert {ladder(op, "cpu") for op, _ in cases} == {
        ladder(op, "cpu") for op in {*rl.ops()} - set(WITHOUT_SPEC.split())
    }
    assert {op for op, _ in cases - in_tables}.isdisjoint(op for op, _ in in_tables)
    assert all(options["every_rung"] and options["longest_s"] < 60 for *_, options in asked)


def test_odd_shapes_run_where_the_op_is_named(asked):
    assert main(["bench", "sum", "sort", "copy", "clamp", "--device", "cpu", "--case", "odd"]) == 0
    cases = {case for _, case, _ in asked}
    assert {"odd 1x262144 rows float32", "odd 1000000x4 columns bfloat16", "odd 4096x1001 bfloat16"} <= cases
    assert ("copy", "odd 1000000x33 turned float32") in {(op, case) for op, case, _ in asked}
    assert all(case.startswith("odd ") for case in cases)


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_ladder_has_a_case(kind):
    benched = {ladder(name, kind) for name, spec in all_specs().items() if spec.bench and name in rl.ops()}
    assert benched == {ladder(op, kind) for op in {*rl.ops()} - set(WITHOUT_SPEC.split())}


def test_every_case_is_a_call():
    """On tensors without memory, so that nothing of their size is allocated."""
    for spec in (spec for spec in all_specs().values() if spec.bench):
        for label, dtype, shapes, kwargs in spec.bench():
            assert cost_of(spec, dtype, shapes, kwargs).bytes > 0, f"{spec.name} {label}"


def test_the_file_says_where_its_rows_come_from(asked, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "version", lambda: "1.0+abc", raising=False)
    path = tmp_path / "here.json"
    assert main(["bench", "gelu", "softmax", "--device", "cpu", "--case", "640 float32", "--json", str(path)]) == 0
    found = json.loads(path.read_text(encoding="utf-8"))
    machine = found["machine"]
    assert machine["kind"] == "cpu" and machine["threads"] == rl.num_threads() and machine["isa"] == rl.cpu_isa()
    assert machine["name"] and "host" not in machine
    assert datetime.date.fromisoformat(found["date"])
    assert found["version"] == "1.0+abc" and found["peer"] is None
    assert [(r["op"], r["case"], r["contender"]) for r in found["rows"]] == [
        ("gelu", "32768x640", "v1_simd"),
        ("softmax", "32768x640", "v1_simd"),
    ]
    assert not any(options["every_rung"] for *_, options in asked)


def test_rows_of_other_ops_and_rungs_stay_and_those_of_the_same_rung_are_replaced(asked, tmp_path, monkeypatch):
    def rows(*ops):
        assert main(["bench", *ops, "--device", "cpu", "--case", "640 float32", "--json", str(path)]) == 0
        return [(row["op"], row["median_ms"]) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]

    path = tmp_path / "here.json"
    assert rows("gelu", "softmax") == [("gelu", 1.0), ("softmax", 1.0)]
    monkeypatch.setattr(bench, "bench_case", lambda spec, label, dtype, *_, **__: [
        Row(spec.name, label, dtype, "v1_simd", 2.0, 1.0, 1.0, 1.0, 1.0, {})])  # fmt: skip
    assert rows("gelu") == [("gelu", 2.0), ("softmax", 1.0)]
    monkeypatch.setattr(bench, "bench_case", lambda spec, label, dtype, *_, **__: [
        Row(spec.name, label, dtype, "v0_naive", 3.0, 1.0, 1.0, 1.0, 1.0, {})])  # fmt: skip
    assert rows("gelu") == [("gelu", 2.0), ("gelu", 3.0), ("softmax", 1.0)], "the rungs of another run stay"
    path.write_text("", encoding="utf-8")
    assert rows("gelu") == [("gelu", 3.0)], "an empty file has no rows"


@pytest.mark.parametrize(("old", "says"), [("1999-12-31", "holds rows of another run"), (None, "is not a result")])
def test_a_file_of_another_day_is_refused_before_anything_is_timed(old, says, asked, tmp_path, capsys):
    path = tmp_path / "here.json"
    words = ["bench", "gelu", "--device", "cpu", "--case", "640 float32", "--json", str(path)]
    assert main(words) == 0
    today = json.loads(path.read_text(encoding="utf-8"))["date"]
    path.write_text(path.read_text(encoding="utf-8").replace(today, old) if old else "notes", encoding="utf-8")
    before = path.read_text(encoding="utf-8"), len(asked)
    assert main(words) == 2 and says in capsys.readouterr().err
    assert (path.read_text(encoding="utf-8"), len(asked)) == before


def test_another_device_is_one_sentence(asked, capsys):
    assert main(["bench", "gelu", "--device", "tpu"]) == 2
    assert "expected cpu, cuda or cuda:N" in capsys.readouterr().err and asked == []


@pytest.fixture
def raced(monkeypatch):
    """Each contender of a small model runs once; the rows are made up."""
    tiny = rl.nn.Gemma3Config(
        hidden_size=32, intermediate_size=64, num_attention_heads=2, head_dim=16, num_hidden_layers=6, vocab_size=50
    )
    monkeypatch.setattr(rl.nn, "GEMMA3_270M", tiny)
    monkeypatch.setattr(gemma3, "_CACHE_BYTES", 1)
    found = []

    def race(case, contenders, cost, device, **options):
        found.append((case, list(contenders), cost))
        for call in contenders.values():
            call()
            call()
        return [Row(*case, name, 2.0, 1.0, 3.0, 1.0, 1.0, {}) for name in contenders]

    monkeypatch.setattr(gemma3, "race", race)
    return found


def test_a_layer_is_raced_eager_and_replayed(raced, tmp_path, capsys):
    path = tmp_path / "layer.json"
    assert main(["bench", "layer", "--device", "cpu", "--case", "float32", "--json", str(path)]) == 0
    cases = [("layer", label, "float32") for label in ("prefill B1 L512", "decode B1 L4096", "decode B8 L4096")]
    assert [case for case, *_ in raced] == cases
    assert all(contenders == ["graph", "eager", "steps", "copy"] for _, contenders, _ in raced)
    one, eight = (cost for *_, cost in raced[1:])
    assert eight.macs == 8 * one.macs and one.bytes < eight.bytes < 8 * one.bytes  # weights are read once
    assert "256,000 tokens/s" in capsys.readouterr().out  # 512 in 2 ms
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert [row["contender"] for row in rows] == ["graph", "eager", "steps", "copy"] * 3


def test_a_model_decodes_the_same_step_again(raced, capsys):
    assert main(["bench", "model", "--device", "cpu", "--case", "bfloat16"]) == 0
    (case, contenders, cost) = raced[0]
    assert case == ("model", "decode B1 L1024", "bfloat16") and contenders == ["graph", "eager", "copy"]
    assert "500 tokens/s" in capsys.readouterr().out and cost.bytes > 0


def test_a_model_has_no_peer(raced, capsys):
    assert main(["bench", "layer", "model", "--device", "cpu", "--peer", "torch"]) == 2
    assert "--peer is for ops and for layer, not for model" in capsys.readouterr().err and raced == []
