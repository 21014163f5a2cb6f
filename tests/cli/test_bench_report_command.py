"""`rooflab bench report`, on a meta device: its files, its tasks, its errors."""

import dataclasses
import json
import subprocess
import sys

import pytest

from rooflab.benchmark import calls, lm_results, report, slurm
from rooflab.benchmark.report import running
from rooflab.cli import main

SMALL = ["bench", "report", "--model-size", "small", "--context-length", "128"]
ON_META = [*SMALL, "--device", "meta:H200"]


def test_a_report_is_written_and_its_rows_are_kept(capsys, tmp_path, monkeypatch):
    folder = tmp_path / "new" / "report"
    options = [*ON_META, "--output", str(folder), "--parts", "step,kernels"]
    assert main(options) == 0
    out = capsys.readouterr().out
    assert out.startswith("H200, a model and not a measurement") and out.count("(modelled)") == 3
    assert {"report.html", "report.md", "rows.json"} <= {path.name for path in folder.iterdir()}
    assert len(json.loads((folder / "rows.json").read_text(encoding="utf-8"))["rows"]) == 3
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "## Where the time goes" in text and "## 16 bits" not in text
    monkeypatch.setattr(running, "measure", None)
    assert main(options) == 0, "what the file holds is not measured again"
    assert (folder / "report.md").read_text(encoding="utf-8") == text


def test_a_cpu_has_eight_minutes_and_a_gpu_all_it_needs(tmp_path, monkeypatch):
    asked = []

    def run(settings, parts, *, minutes, **options):
        asked.append((settings.device, minutes, settings.model_device))
        return report.Rows(settings, [], "A machine")

    monkeypatch.setattr(report, "run", run)
    monkeypatch.setattr(
        lm_results.Origin, "of", classmethod(lambda cls, device: cls({"kind": "cpu", "name": "x"}, "1"))
    )
    common = ["--output", str(tmp_path), "--parts", "step"]
    for more in (["--device", "cpu"], ["--device", "cpu", "--minutes", "0.5"], ["--device", "cuda:0"]):
        assert main([*SMALL, *common, *more, "--model-device", "meta:H200"]) == 0
    assert asked == [("cpu", 8.0, "meta:H200"), ("cpu", 0.5, "meta:H200"), ("cuda:0", None, "meta:H200")]


@pytest.mark.slow
def test_tasks_of_slurm_measure_what_the_report_would(capsys, tmp_path, monkeypatch):
    file, submitted = tmp_path / "rows.json", []
    monkeypatch.setattr(slurm, "submit", lambda *arguments: submitted.append(arguments) or (file, "7"))
    options = [*ON_META, "--parts", "step", "--json", str(file), "--output", str(tmp_path)]
    assert main([*options, "--slurm", "--slurm-option=--partition=gpu"]) == 0
    ((command, tasks, where, sbatch),) = submitted
    assert (tasks, where, sbatch) == (3, file, ["--partition=gpu"]) and "Job 7: 3 tasks" in capsys.readouterr().out
    assert (
        command[command.index("--device") + 1] == "meta:H200" and command[command.index("--measure-steps") + 1] == "10"
    )
    for task in (0, 2):
        row = slurm.rows_folder(file) / f"{task}.json"
        assert command[:3] == [sys.executable, "-m", "rooflab"]
        subprocess.run([*command, "--only", str(task), "--json", str(row)], check=True, capture_output=True)
    assert main([*options, "--gather"]) == 0
    assert "2 of 3 cases and 0 of 0 calls have a row." in capsys.readouterr().out
    modes = [result.case.mode for result in lm_results.load(file)[0]]
    assert modes == ["forward", "train"] and "| full step |" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_the_last_task_has_the_calls(capsys, tmp_path, monkeypatch):
    few = [calls.Call("product", "", (("N", N),), "meta:H200") for N in (128, 256)]
    monkeypatch.setitem(report.PARTS, "scaling", dataclasses.replace(report.PARTS["scaling"], calls=lambda _: few))
    file, submitted = tmp_path / "rows.json", []
    monkeypatch.setattr(slurm, "submit", lambda *arguments: submitted.append(arguments) or (file, "7"))
    options = [*ON_META, "--parts", "step,scaling", "--json", str(file), "--output", str(tmp_path)]
    assert main([*options, "--slurm"]) == 0 and submitted[0][1] == 4
    for task in (1, 3):
        row = slurm.rows_folder(file) / f"{task}.json"
        assert main([*options[:-4], "--only", str(task), "--json", str(row)]) == 0
    assert main([*options, "--gather"]) == 0
    assert "1 of 3 cases and 2 of 2 calls have a row." in capsys.readouterr().out
    assert [r.call for r in lm_results.load_calls(file, lm_results.load(file)[1])] == few
    assert main([*options[:-4], "--only", "4", "--json", str(file)]) == 2
    assert "--only: expected 0 to 3, got 4" in capsys.readouterr().err


def test_another_machine_stands_beside_this_one(tmp_path):
    for name, device in (("there", "meta:A10"), ("here", "meta:H200")):
        compare = ["--compare", str(tmp_path / "there" / "rows.json")] if name == "here" else []
        options = ["--parts", "step", "--device", device, "--output", str(tmp_path / name), *compare]
        assert main([*SMALL, *options]) == 0
    text = (tmp_path / "here" / "report.md").read_text(encoding="utf-8")
    assert "## Beside A10" in text and text.count("modelled, A10 ") == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parts", "steps"], "expected some of step, warmup, kernels"),
        (["--minutes", "0"], "expected a number above 0, got '0'"),
        (["--minutes", "nan"], "expected a number above 0, got 'nan'"),
    ],
)
def test_bad_options_are_named(capsys, options, message):
    with pytest.raises(SystemExit):
        main([*ON_META, *options])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--device", "meta:H2000"], "--device: expected one of cpu, A6000"),
        (["--device", "cpu", "--model-device", "H200"], "--model-device: expected a meta device such as meta:H200"),
        (["--compare", "none.json"], "none.json"),
        (["--only", "1"], "--only: expected --json FILE"),
        (["--only", "99", "--json", "x.json"], "--only: expected 0 to "),
        (["--gather"], "no task has left rows"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(capsys, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    assert main([*ON_META, *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["lm", "report"])
def test_the_help_begins_with_the_command(capsys, name):
    with pytest.raises(SystemExit):
        main(["bench", name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: rooflab bench {name} [-h] [--")


def test_a_stop_is_said(capsys, tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "measure", stop)
    (tmp_path / "rows.json").write_text('{"rows": []}', encoding="utf-8")
    monkeypatch.setattr(lm_results, "finished", lambda file, origin: [])
    assert main([*ON_META, "--output", str(tmp_path)]) == 130
    assert "the same command goes on with them" in capsys.readouterr().err
