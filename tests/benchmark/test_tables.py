"""The tables beside the rungs are what the committed results make of them."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from rooflab.benchmark import tables
from rooflab.benchmark.ladder import Row
from rooflab.benchmark.results import Result, load, save
from rooflab.specs import all_specs

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "assets" / "bench").glob("*.json"))
LADDER = "// gelu\n//\n// [measured gelu] by hand\n// stale\n// [end measured]\n//\n#pragma once\n"
CPU = {"kind": "cpu", "name": "Some CPU", "threads": 2, "isa": "avx2"}
GPU = {"kind": "cuda", "name": "Some GPU", "driver": "580.65.06", "cuda": "13.0"}


def row(contender, *, op="gelu", case="16384x4096", dtype="float32", tflop_s=0.5, **ratios):
    return Row(
        op, case, dtype, contender, 1.0, 0.9, 1.1, tflop_s, 40.0, {name: (r, r, r) for name, r in ratios.items()}
    )


def result(*rows, machine=CPU, peer=None):
    return Result(machine, "2026-01-31", "0.1.0", peer, list(rows))


@pytest.fixture
def checkout(tmp_path):
    """A copy of this repository's ladders and results, for tests to spoil."""
    for path in tables.ladders(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    shutil.copytree(ROOT / "assets" / "bench", tmp_path / "assets" / "bench")
    return tmp_path


def cpu_file(root):
    """A result of a CPU, because every ladder has rungs of a CPU."""
    return next(p for p in sorted((root / "assets" / "bench").glob("*.json")) if load(p).machine["kind"] == "cpu")


def stale(root):
    """The ladders whose tables differ from the results."""
    results = tables.committed(root)
    texts = {path.name: path.read_text(encoding="utf-8") for path in tables.ladders(root)}
    return [name for name, text in texts.items() if tables.rewritten(text, results) != text]


def test_the_ladders_show_what_is_committed():
    assert FILES and stale(ROOT) == []


def test_every_op_with_a_table_has_it_in_one_place():
    shown = [op for path in tables.ladders(ROOT) for op in tables.shown(path.read_text(encoding="utf-8"))]
    assert sorted(shown) == sorted(name for name, spec in all_specs().items() if spec.tables)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_committed_result_holds_the_cases_of_the_tables(path):
    found = load(path)
    kind = found.machine["kind"]
    wanted = {(name, case) for name, spec in all_specs().items() for case in spec.tables.get(kind, ())}
    assert {(r.op, f"{r.case} {r.dtype}") for r in found.rows if all_specs()[r.op].tables} == wanted


def test_cases_of_tables_are_benched():
    for name, spec in all_specs().items():
        benched = {f"{label} {dtype}" for label, dtype, *_ in spec.bench()} if spec.bench else set()
        assert {case for cases in spec.tables.values() for case in cases} <= benched, name


def test_a_changed_figure_is_noticed(checkout):
    path = cpu_file(checkout)
    found = load(path)
    changed = [dataclasses.replace(r, tflop_s=2 * r.tflop_s) if r.op == "matmul" else r for r in found.rows]
    save(path, dataclasses.replace(found, rows=changed))
    assert stale(checkout) == ["matmul_ladder.cpp"]
    assert tables.main([str(checkout)]) == 0 and stale(checkout) == []


def test_a_figure_changed_by_hand_is_noticed(checkout):
    path = checkout / "csrc" / "kernels" / "gelu" / "gelu_ladder.cpp"
    path.write_text(path.read_text(encoding="utf-8").replace(" % of copy", "  of copy", 1), encoding="utf-8")
    assert stale(checkout) == ["gelu_ladder.cpp"]


def test_a_renamed_rung_is_noticed(checkout, capsys):
    path = cpu_file(checkout)
    path.write_text(path.read_text(encoding="utf-8").replace('"v1_simd"', '"v1_lanes"'), encoding="utf-8")
    with pytest.raises(ValueError, match="has no rung v1_lanes; measure again"):
        stale(checkout)
    assert tables.main([str(checkout)]) == 2 and "v1_lanes" in capsys.readouterr().err


def test_a_table_has_a_line_a_rung_and_a_dash_for_what_was_not_measured():
    rows = [row("v2_streaming", copy=0.987), row("v1_simd", copy=0.0512), row("copy")]
    assert tables.rewritten(LADDER, [result(*rows)]).splitlines()[2:-2] == [
        "// [measured gelu] by hand",
        "// Some CPU, 2 threads, avx2, 2026-01-31, rooflab 0.1.0:",
        "//                 16384x4096",
        "//                    float32",
        "//                  % of copy",
        "//   v0_reference           -",
        "//   v1_simd              5.1",
        "//   v2_streaming          99",
        "//   copy, GB/s            40",
        "//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.",
        "// [end measured]",
    ]


def test_products_are_shown_by_their_speed_and_peers_below_the_rungs():
    rows = [row(name, op="matmul", case="4096", tflop_s=s) for name, s in (("v5_hopper", 723.4), ("torch", 700.0))]
    lines = tables.table(["matmul"], result(*rows, machine=GPU, peer="torch 2.9.1"))
    assert lines[0] == "Some GPU, driver 580.65.06, CUDA 13.0, 2026-01-31, rooflab 0.1.0, torch 2.9.1:"
    assert [line.split()[-1] for line in lines[1:4]] == ["4096", "float32", "TFLOP/s"]
    assert [line.split()[0] for line in lines[-4:]] == ["v5_hopper", "v6_split_bf16", "library", "torch"]
    assert [line.split()[1] for line in lines[-4:]] == ["723", "-", "-", "700"]  # no copy, so no word about one


def test_machines_never_share_a_table():
    rows = [row("v1_fused", copy=0.5), row("copy")]
    text = tables.rewritten(LADDER, [result(row("v1_simd", copy=0.5), row("copy")), result(*rows, machine=GPU)])
    assert text.index("Some CPU") < text.index("v1_simd") < text.index("Some GPU") < text.index("v1_fused")
    assert tables.table(["gelu"], result(row("v1_fused", op="softmax"))) == []


def test_a_result_comes_back_as_it_was_saved(tmp_path):
    path = tmp_path / "absent" / "machine.json"
    saved = result(row("v1_simd", tflop_s=1 / 3, copy=2 / 3), row("copy"), machine=GPU, peer="torch 2.9.1")
    save(path, saved)
    values = json.loads(path.read_text(encoding="utf-8"))
    assert list(values) == ["machine", "date", "version", "peer", "rows"]
    assert values["rows"][0]["tflop_s"] == 0.33333 and values["rows"][0]["ratios"] == {"copy": [0.66667] * 3}
    found = load(path)
    assert dataclasses.replace(found, rows=[]) == dataclasses.replace(saved, rows=[])
    assert [r.contender for r in found.rows] == ["v1_simd", "copy"]
    save(path, found)
    assert load(path) == found
    assert sum("contender" in line for line in path.read_text(encoding="utf-8").splitlines()) == 2


@pytest.mark.parametrize("text", ["[]", "{", '{"rows": [{}]}', '{"machine": {}, "rows": []}'])
def test_another_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"\[bench\] .*other.json is not a result"):
        load(path)


def test_no_results_is_an_error(tmp_path, capsys):
    assert tables.main([str(tmp_path)]) == 2
    assert "holds no results" in capsys.readouterr().err
