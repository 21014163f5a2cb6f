"""Rows of `rooflab bench lm` as files, and sweeps that go on where they stopped."""

import csv
import dataclasses
import io
import json
import math
import threading
import time
from pathlib import Path

import pytest

from rooflab.benchmark import lm, lm_results, sweep
from rooflab.benchmark.lm import Case, Result
from rooflab.benchmark.lm_profile import Pass
from rooflab.benchmark.lm_results import Origin

HERE = Origin({"kind": "cpu", "name": "A CPU", "threads": 2}, "1.0+abc")
OK = Result(
    Case("small", 256, mode="both"), samples_ms=(10.0, 12.0, 14.0), warmup_ms=(80.0, 11.0), parameters=128_625_408,
    macs=6 * 10**9, flops=13 * 10**9, bytes=5, launches=7, host_calls=8, peak_bytes=3 * 2**29, peak_tflop_s=2.0,
    peak_source="datasheet of A CPU, float32",
)  # fmt: skip
FULL = Result(Case("2.7B", 1024, mode="train"), status=lm.OUT_OF_MEMORY, reason="100 MB asked")


def test_what_is_saved_is_what_is_loaded(tmp_path):
    path = tmp_path / "new" / "rows.json"
    lm_results.save(path, [OK, FULL], HERE)
    assert lm_results.load(path) == ([OK, FULL], HERE)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 9  # a line a row, so that files can be compared
    assert json.loads(path.read_text(encoding="utf-8"))["rows"][0]["samples_ms"] == [10.0, 12.0, 14.0]


@pytest.mark.parametrize(
    "text",
    [
        "[]", '{"rows": 1}', '{"machine": {"kind": "cpu", "name": "A"}, "version": "1", "rows": [{"mode": "no"}]}',
        '{"machine": {}, "version": "1", "rows": []}', '{"machine": 3, "version": "1", "rows": []}',
        '{"machine": {"kind": "cpu", "name": "A"}, "version": "1", "peer": 3, "rows": []}',
    ],
)  # fmt: skip
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "rows.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"rows\.json is not a result of rooflab bench lm"):
        lm_results.load(path)
    with pytest.raises(ValueError, match=r"rows\.json (is not a result of rooflab bench lm|holds rows of another run)"):
        lm_results.save(path, [OK], HERE)


@pytest.mark.parametrize(
    "changes",
    [
        {"samples_ms": [-1.0]}, {"samples_ms": [0.0]}, {"warmup_ms": ["NaN"]}, {"status": "weird"}, {"macs": -1},
        {"peak_tflop_s": -2.0}, {"profiled_ms": "Infinity"},
    ],
)  # fmt: skip
def test_rows_that_cannot_be_are_refused(tmp_path, changes):
    path = tmp_path / "rows.json"
    lm_results.save(path, [OK], HERE)
    values = json.loads(path.read_text(encoding="utf-8"))
    values["rows"][0] |= changes
    path.write_text(json.dumps(values), encoding="utf-8")
    (name,) = changes
    with pytest.raises(ValueError, match=rf"rows\.json is not a result of rooflab bench lm: .*\[Result.*\] {name}"):
        lm_results.load(path)


def test_of_two_rows_of_one_case_the_last_one_counts(tmp_path):
    path, peer = tmp_path / "rows.json", dataclasses.replace(OK, contender="torch")
    lm_results.save(path, [OK, peer, dataclasses.replace(OK, launches=9)], HERE)
    assert lm_results.load(path)[0] == [dataclasses.replace(OK, launches=9), peer]


def test_an_empty_file_and_a_device_have_no_rows_to_go_on_with(tmp_path):
    path = tmp_path / "rows.json"
    path.touch()
    with pytest.raises(ValueError, match="is not a result"):
        lm_results.load(path)
    for empty in (path, Path("/dev/null")):
        assert lm_results.finished(empty, HERE) == lm_results.load_calls(empty, HERE) == []
        lm_results.save(empty, [OK], HERE)
    assert lm_results.load(path)[0] == [OK]


def test_csv_has_units_in_its_names_and_empty_cells_for_what_is_not_known():
    rows = list(csv.DictReader(io.StringIO(lm_results.to_csv([OK, FULL]))))
    first, second = rows
    assert (first["mean_ms"], first["median_ms"], first["first_warmup_ms"]) == ("12.0", "12.0", "80.0")
    assert float(first["std_ms"]) == pytest.approx(math.sqrt(8 / 3))
    assert float(first["tflop_s"]) == pytest.approx(1.0) and float(first["share_of_peak"]) == pytest.approx(0.5)
    assert float(first["tokens_per_s"]) == pytest.approx(4 * 256 / 12e-3)
    assert (first["warmup_steps"], first["warmup_total_ms"], first["total_ms"]) == ("5", "91.0", "36.0")
    assert (first["peak_bytes"], first["launches"], first["steps"]) == (str(3 * 2**29), "7", "3")
    assert (second["status"], second["model_size"], second["context_length"]) == ("out of memory", "2.7B", "1024")
    assert {
        second[name]
        for name in ("warmup_total_ms", "total_ms", "mean_ms", "std_ms", "tflop_s", "peak_bytes", "launches")
    } == {""}
    peer = lm_results.to_csv([dataclasses.replace(OK, macs=0)])
    assert next(csv.DictReader(io.StringIO(peer)))["tflop_s"] == ""


def test_the_table_has_every_row_and_says_what_it_is():
    text = lm_results.to_markdown([OK, FULL], HERE)
    head, line, first, second, _, note = text.rstrip("\n").split("\n")
    assert head.count("|") == line.count("|") == first.count("|") == second.count("|")
    assert "| 5 | 3 | 91 | 36 | 12 | 1.633 | 12 | 1 | 50.0% | 85333 | 1.50 | 7 |" in first
    assert "| rooflab | 5 | out of memory |" in second
    assert note == (
        "A CPU, threads 2, rooflab 1.0+abc. w steps of warm-up, then n measured ones; standard deviations with ddof 0; "
        "TFLOP/s of the products, 2 for each MAC that was counted; of peak: datasheet of A CPU, float32 2 TFLOP/s."
    )


def test_a_table_of_a_model_says_so_and_has_no_spread():
    origin = Origin.of("meta:H200")
    one = Result(Case("small", 256, device="meta:H200"), samples_ms=(12.0,), launches=3)
    assert "H200, a model and not a measurement" in lm_results.to_markdown([one], origin)
    assert lm_results.cells(one)[6:13] == ("-", "1", "-", "12", "12", "-", "12")


def test_csv_and_text_know_no_more_than_the_table():
    model = Result(Case("small", 256, device="meta:H200"), samples_ms=(12.0,), launches=3)
    one = dataclasses.replace(OK, samples_ms=(10.0,), warmup_ms=())
    rows = csv.DictReader(io.StringIO(lm_results.to_csv([model, one])))
    names = ("warmup_steps", "warmup_total_ms", "std_ms", "mean_ms")
    assert [[row[name] for name in names] for row in rows] == [["", "", "", "12.0"], ["5", "", "", "10.0"]]
    assert "std" not in str(one) and "(n=1 after 0)" in str(one)


def test_shares_of_a_peak_say_where_forwards_run_again():
    again = dataclasses.replace(OK, case=dataclasses.replace(OK.case, recompute=True))
    for shown in (lm_results.to_text, lambda results: lm_results.to_markdown(results, HERE)):
        assert "model FLOPs utilization (MFU) is less" in shown([OK, again]) and "MFU" not in shown([OK, OK])


CASES = sweep.cases(["small", "medium"], [128, 256], ["forward"])


def test_cases_that_differ_in_their_warm_up_alone_are_rows_of_their_own(tmp_path):
    path, cases = tmp_path / "rows.json", sweep.cases(["small"], [128], ["both"], [0, 1, 5])
    assert [case.warmup_steps for case in cases] == [0, 1, 5]
    for case in cases:  # in runs of their own
        sweep.run([case], file=path, origin=HERE, measure=lambda case: [Result(case, samples_ms=(1.0, 3.0))])
    rows = lm_results.load(path)[0]
    assert [row.case for row in rows] == cases
    assert [lm_results.cells(row)[6:8] for row in rows] == [("0", "2"), ("1", "2"), ("5", "2")]


def test_a_process_of_its_own_measures_as_this_one_does():
    case = Case("small", device="meta:H200")
    assert sweep.in_a_new_process(case) == [lm.benchmark(case)]
    assert sweep.in_a_new_process(case, profile=True)[0].profile


def test_a_sweep_runs_every_case_once_and_keeps_each(tmp_path):
    path, measured, shown = tmp_path / "rows.json", [], []

    def measure(case):
        if measured:  # the file has what was found before
            assert [result.case for result in lm_results.load(path)[0]] == measured
        measured.append(case)
        return [Result(case, samples_ms=(1.0,))]

    results = sweep.run(CASES, file=path, origin=HERE, measure=measure, found=shown.extend)
    assert measured == CASES == [result.case for result in results] and shown == results
    assert lm_results.load(path) == (results, HERE)


def test_a_sweep_goes_on_where_it_was_cut_short(tmp_path):
    path, measured = tmp_path / "rows.json", []

    def measure(case):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(case)
        status = lm.OUT_OF_MEMORY if case.model_size == "small" and case.context_length == 256 else "ok"
        return [Result(case, status=status)]

    with pytest.raises(KeyboardInterrupt):
        sweep.run(CASES, file=path, origin=HERE, measure=measure)
    again = []
    results = sweep.run(CASES, file=path, origin=HERE, measure=lambda case: again.append(case) or [Result(case)])
    assert again == CASES[2:], "a row for which the memory did not suffice is a row"
    assert [result.case for result in results] == CASES
    assert [result.status for result in results] == ["ok", "out of memory", "ok", "ok"]


def test_rows_of_other_sweeps_stay_in_the_file(tmp_path):
    path = tmp_path / "rows.json"
    lm_results.save(path, [FULL], HERE)
    results = sweep.run(CASES[:1], file=path, origin=HERE, measure=lambda case: [Result(case)])
    assert [result.case for result in results] == CASES[:1]
    assert [result.case for result in lm_results.load(path)[0]] == [FULL.case, CASES[0]]


def test_two_sweeps_into_one_file_lose_no_row(tmp_path):
    path, other = tmp_path / "rows.json", dataclasses.replace(FULL, case=CASES[3])

    def measure(case):
        if case == CASES[1]:
            sweep.run(CASES[3:], file=path, origin=HERE, measure=lambda case: [other])
        return [Result(case)]

    sweep.run(CASES[:3], file=path, origin=HERE, measure=measure)
    rows = lm_results.load(path)[0]
    assert [row.case for row in rows] == [CASES[0], CASES[3], *CASES[1:3]] and other in rows


def test_a_row_that_is_added_waits_for_another_writer(tmp_path, monkeypatch):
    path, write = tmp_path / "rows.json", lm_results.write
    threads = [threading.Thread(target=lm_results.save, args=(path, [Result(case)], HERE)) for case in CASES]

    def slow(*arguments):  # between what is read and what is written
        time.sleep(0.02)
        write(*arguments)

    monkeypatch.setattr(lm_results, "write", slow)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {row.case for row in lm_results.load(path)[0]} == set(CASES)
    assert list(tmp_path.iterdir()) == [path]


def test_a_case_with_one_unfinished_contender_is_measured_again_and_replaces_its_rows(tmp_path):
    path, case, other = tmp_path / "rows.json", CASES[0], CASES[1]
    torch, ours = Result(case, contender="torch"), Result(case, memory={"forward": {"logits": 3}})
    lm_results.save(path, [Result(case), torch, Result(other)], HERE)
    asked = []
    results = sweep.run(
        [case],
        file=path,
        origin=HERE,
        measure=lambda case: asked.append(case) or [ours, torch],
        is_finished=lambda result: bool(result.memory) or result.contender == "torch",
    )
    assert asked == [case] and results == [ours, torch]
    assert lm_results.load(path)[0] == [ours, torch, Result(other)], "an unfinished row that nobody asks for stays"


@pytest.mark.parametrize(
    "other", [{"version": "1.1"}, {"machine": {"kind": "cpu", "name": "Another"}}, {"peer": "torch 2.11"}]
)
def test_rows_of_another_machine_or_version_are_not_gone_on_with(tmp_path, other):
    path = tmp_path / "rows.json"
    lm_results.save(path, [OK], dataclasses.replace(HERE, **other))
    with pytest.raises(ValueError, match="holds rows of another run"):
        sweep.run(CASES, file=path, origin=HERE, measure=lambda case: [Result(case)])
    assert lm_results.load(path)[0] == [OK]


def test_profiles_and_memory_are_tables_of_their_own():
    one = Pass("forward", 12, 4.0, 5.0, {"softmax": 1.0, "gemm": 3.0}, "matmul_v9 (matmul)", 9, 2.5)
    held = {"forward": {"parameters": 2**30, "logits": 2**28}, "backward": {"parameters": 2**30, "gradients": 2**29}}
    with_both = dataclasses.replace(OK, profile=(one,), memory=held)
    text = lm_results.to_markdown([OK, with_both], HERE)
    label = OK.case.label
    assert "| case | pass | launches | busy ms | of ms | gemm | softmax | most in |" in text
    assert f"| {label} | forward | 12 | 4 | 5 | 75.0% | 25.0% | 9 x matmul_v9 (matmul) |" in text
    assert "| case | phase | peak | parameters | logits | gradients |" in text
    assert f"| {label} | forward | 1.250 | 1.000 | 0.250 | 0.000 |" in text
    assert f"| {label} | backward | 1.500 | 1.000 | 0.000 | 0.500 |" in text
    assert "pass" not in lm_results.to_markdown([OK], HERE) and "GiB (2^30" not in lm_results.to_markdown([OK], HERE)


def test_profiles_and_memory_are_saved_too(tmp_path):
    one = Pass("forward", 12, 4.0, 5.0, {"gemm": 3.0}, "matmul_v9 (matmul)", 9, 2.5)
    result = dataclasses.replace(OK, profile=(one,), profiled_ms=5.5, memory={"forward": {"parameters": 3}})
    lm_results.save(tmp_path / "rows.json", [result], HERE)
    assert lm_results.load(tmp_path / "rows.json")[0] == [result]
