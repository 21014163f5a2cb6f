"""`rooflab bench lm --slurm`, with an sbatch that runs the tasks of an array one after the other."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from rooflab.benchmark import lm_results, slurm
from rooflab.cli import main

PYTHON = str(Path(slurm.__file__).parents[2])

FAKE_SBATCH = r"""#!/bin/bash
# What Debian's sbatch takes of an array: the last argument is the script, #SBATCH lines are its options.
set -eu
echo "$*" > "$FAKE_SLURM/arguments"
script="${@: -1}"
range=$(sed -n 's/^#SBATCH --array=//p' "$script")
for task in $(seq "${range%-*}" "${range#*-}"); do
    log=$(sed -n 's/^#SBATCH --output=//p' "$script" | sed "s/%a/$task/")
    (cd / && env SLURM_ARRAY_TASK_ID="$task" bash "$script") > "$log" 2>&1 || echo "$task" >> "$FAKE_SLURM/failed"
done
echo "4711;cluster"
"""
SWEEP = ["bench", "lm", "--device", "meta:H200", "--context-length", "128,256", "--mode", "inference,train", "--memory"]


@pytest.fixture
def sbatch(monkeypatch, tmp_path):
    """A program of that name on PATH. Its folder holds the arguments that it was called with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "sbatch"
    program.write_text(FAKE_SBATCH, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", PYTHON)
    monkeypatch.setenv("FAKE_SLURM", str(folder))
    return folder


@pytest.mark.slow
def test_an_array_measures_what_the_sweep_would(sbatch, tmp_path, capsys):
    path = tmp_path / "with space" / "rows.json"
    options = ["--slurm-option=--partition=gpu", "--slurm-option=--gres=gpu:1"]
    assert main([*SWEEP, "--json", str(path), "--slurm", *options]) == 0
    said = capsys.readouterr().out
    written = slurm.rows_folder(path) / "array.sbatch"
    assert said.startswith(f"Job 4711: 4 tasks of {written}.")
    assert (sbatch / "arguments").read_text(encoding="utf-8").strip() == f"--parsable {written}"
    text = written.read_text(encoding="utf-8")
    assert "#SBATCH --array=0-3\n" in text and "#SBATCH --partition=gpu\n#SBATCH --gres=gpu:1\n" in text
    assert not (sbatch / "failed").exists(), "a task failed"
    assert not path.exists()
    assert main([*SWEEP, "--json", str(path), "--gather"]) == 0
    gathered, origin = lm_results.load(path)
    capsys.readouterr()
    assert main([*SWEEP, "--json", str(tmp_path / "here.json")]) == 0
    assert (gathered, origin) == lm_results.load(tmp_path / "here.json")
    assert all(result.memory for result in gathered)


def test_rows_that_are_not_there_yet_are_counted(sbatch, tmp_path, capsys):
    path = tmp_path / "rows.json"
    assert main([*SWEEP, "--json", str(path), "--gather"]) == 2
    assert "no task has left rows" in capsys.readouterr().err
    assert main([*SWEEP, "--json", str(slurm.rows_folder(path) / "2.json"), "--only", "2"]) == 0
    (slurm.rows_folder(path) / "notes.json").write_text("{}", encoding="utf-8")  # no task's
    assert main([*SWEEP, "--json", str(path), "--gather", "--csv", str(tmp_path / "rows.csv")]) == 0
    assert "3 of 4 cases have no row yet" in capsys.readouterr().out
    assert len(lm_results.load(path)[0]) == 1
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()[1].startswith("small,256,4,inference")


def test_rows_of_different_machines_are_not_mixed(tmp_path, capsys):
    path = tmp_path / "rows.json"
    for number, device in enumerate(("meta:H200", "meta:A10")):
        rows = str(slurm.rows_folder(path) / f"{number}.json")
        assert main(["bench", "lm", "--device", device, "--json", rows]) == 0
    assert main(["bench", "lm", "--json", str(path), "--gather"]) == 2
    assert "ran on different machines" in capsys.readouterr().err


def test_without_slurm_the_script_is_written_and_a_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main([*SWEEP, "--json", str(tmp_path / "rows.json"), "--slurm"]) == 2
    assert "no sbatch on PATH" in capsys.readouterr().err
    assert (slurm.rows_folder(tmp_path / "rows.json") / "array.sbatch").exists()


def test_what_sbatch_refuses_is_said(sbatch, tmp_path, capsys):
    (sbatch / "sbatch").write_text(
        "#!/bin/bash\necho 'sbatch: error: invalid partition' >&2\nexit 1\n", encoding="utf-8"
    )
    assert main([*SWEEP, "--json", str(tmp_path / "rows.json"), "--slurm"]) == 2
    assert "sbatch: error: invalid partition" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--slurm"], "expected --json FILE"),
        (["--gather"], "expected --json FILE"),
        (["--only", "4"], "only: expected 0 to 3, got 4"),
        (["--slurm", "--json", "rows.json", "--slurm-option=rm -rf"], "expected options of sbatch"),
    ],
)
def test_bad_options_are_a_sentence(options, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main([*SWEEP, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_script_is_a_script(tmp_path):
    text = slurm.script(["rooflab", "bench", "lm", "--mode", "a b"], 2, tmp_path / "it's.json")
    (tmp_path / "array").write_text(text, encoding="utf-8")
    subprocess.run(["bash", "-n", str(tmp_path / "array")], check=True)
    assert "'a b'" in text and '"$SLURM_ARRAY_TASK_ID".json' in text
