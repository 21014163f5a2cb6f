"""`rooflab bench lm`, on a meta device: its cases, its files, its errors."""

import csv
import json

import pytest

from rooflab.benchmark import lm, sweep
from rooflab.cli import main

ON_META = ["bench", "lm", "--device", "meta:H200"]


def test_every_size_at_every_length_and_mode(capsys, tmp_path):
    files = [tmp_path / f"rows.{kind}" for kind in ("json", "csv", "md")]
    options = ["--model-size", "small,medium", "--context-length", "128,256", "--mode", "inference,train"]
    written = ["--json", str(files[0]), "--csv", str(files[1]), "--markdown", str(files[2])]
    assert main([*ON_META, *options, *written]) == 0
    out = capsys.readouterr().out
    assert out.startswith("H200, a model and not a measurement, rooflab")
    rows = list(csv.DictReader(files[1].open(encoding="utf-8")))
    cases = [(row["model_size"], row["context_length"], row["mode"]) for row in rows]
    wanted = [(s, n, m) for s in ("small", "medium") for n in ("128", "256") for m in ("inference", "train")]
    assert cases == wanted
    assert {row["parameters"] for row in rows} == {"128625408", "423183360"}
    assert len(json.loads(files[0].read_text(encoding="utf-8"))["rows"]) == 8
    assert files[2].read_text(encoding="utf-8").count("| small |") == 4
    assert all(f"{s} B4 L{n} {m}, composed: " in out for s, n, m in wanted)


def test_what_the_file_holds_is_not_measured_again(capsys, tmp_path, monkeypatch):
    path = tmp_path / "rows.json"
    assert main([*ON_META, "--json", str(path)]) == 0
    first = capsys.readouterr().out
    measured = []
    monkeypatch.setattr(lm, "benchmark", lambda case, **options: measured.append(case) or lm.Result(case))
    assert main([*ON_META, "--json", str(path)]) == 0
    assert capsys.readouterr().out == first and measured == []
    assert main([*ON_META, "--json", str(path), "--batch-size", "2"]) == 0
    assert [case.batch_size for case in measured] == [2]


def test_a_case_that_does_not_fit_is_a_row(capsys):
    options = ["--device", "meta:A100 SXM 40GB", "--mode", "train", "--context-length", "512,1024"]
    assert main(["bench", "lm", "--model-size", "xl", *options]) == 0
    out = capsys.readouterr().out
    assert out.count("train, composed: out of memory (") == out.count("rooflab  -  out of memory\n") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model-size", "tiny"], "expected some of small, medium, large, xl, 2.7B, or all; got 'tiny'"),
        (["--mode", "both,neither"], "expected some of inference, forward, backward, both, train, or all"),
        (["--context-length", "128,0"], "expected a whole number of 1 or more, got '0'"),
        (["--warmup-steps", "1,-1"], "expected a whole number of 0 or more, got '-1'"),
        (["--measure-steps", "0"], "expected a whole number of 1 or more"),
    ],
)
def test_bad_options_are_named(capsys, options, message):
    with pytest.raises(SystemExit):
        main([*ON_META, *options])
    assert message in capsys.readouterr().err


def test_each_warm_up_is_measured_in_a_process_of_its_own(capsys, tmp_path, monkeypatch):
    path, asked = tmp_path / "rows.csv", []

    def in_a_new_process(case, *, profile):
        asked.append((case.warmup_steps, profile))
        return [lm.Result(case, samples_ms=(3.0, 5.0), warmup_ms=(9.0,) * case.warmup_steps)]

    monkeypatch.setattr(sweep, "in_a_new_process", in_a_new_process)
    monkeypatch.setattr(lm, "benchmark", None)
    options = ["--device", "cpu", "--warmup-steps", "0,1,5", "--profile", "--csv", str(path)]
    assert main(["bench", "lm", *options]) == 0
    rows = list(csv.DictReader(path.open(encoding="utf-8")))
    assert asked == [(0, True), (1, True), (5, True)]
    assert [(row["warmup_steps"], row["warmup_total_ms"]) for row in rows] == [
        ("0", "0.0"),
        ("1", "9.0"),
        ("5", "45.0"),
    ]
    assert "n=2 after 5)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"), [(ON_META, "a meta device"), (["bench", "lm", "--device", "cpu", "--memory"], "leave --peer")]
)
def test_several_warm_ups_need_times(capsys, options, said):
    assert main([*options, "--warmup-steps", "0,1"]) == 2
    assert "--warmup-steps: " in (error := capsys.readouterr().err) and said in error


def test_an_unknown_device_is_a_sentence(capsys):
    assert main(["bench", "lm", "--device", "meta:H2000"]) == 2
    assert capsys.readouterr().err.startswith("rooflab bench lm: --device: expected one of cpu, A6000")


def test_a_file_of_another_run_is_a_sentence(capsys, tmp_path):
    path = tmp_path / "rows.json"
    assert main(["bench", "lm", "--device", "meta:A10", "--json", str(path)]) == 0
    assert main([*ON_META, "--json", str(path)]) == 2
    assert "holds rows of another run (A10" in capsys.readouterr().err


def test_a_stop_is_said(capsys, monkeypatch):
    def stop(case, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(lm, "benchmark", stop)
    assert main(ON_META) == 130
    assert "Stopped" in capsys.readouterr().err
