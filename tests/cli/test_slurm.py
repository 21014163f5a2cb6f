"""`rooflab grade --slurm`: a manifest, a job array, and results that are collected. If one is lost, the next run goes
on. Slurm is a script here; `test_real_slurm.py` has a real one.
"""

import json
import os
import zipfile

import pytest
from cli.three_students import COMMAND, table

from rooflab.cli import main
from rooflab.grading.classroom import slurm

pytestmark = pytest.mark.slow  # each test grades a class

SBATCH = """#!/bin/bash
printf '%s\\n' "$@" > {folder}/options
[ -e {folder}/refuse ] && { echo "sbatch: error: invalid partition" >&2; exit 1; }
echo "42;cluster"
for option; do case $option in --array=*) last=${option##*-};; esac; done
code=0
for task in $(seq 0 $last); do
  [ -e {folder}/lose-$task ] || SLURM_ARRAY_TASK_ID=$task bash "${@: -1}" || code=1
done
exit $code
"""


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """A folder on PATH with an sbatch that runs the tasks here, and a scancel that says what it is to cancel."""
    folder = tmp_path / "slurm-bin"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH), ("scancel", "#!/bin/sh\necho $1 > {folder}/cancelled\n")):
        (folder / name).write_text(text.replace("{folder}", str(folder)), encoding="utf-8")
        (folder / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "SETTLE_S", 0.1)
    monkeypatch.setattr(slurm, "POLL_S", 0.05)
    return folder


def test_a_class_by_a_job_array(handed, tmp_path, sbatch, capsys):
    assert main([*COMMAND, "--slurm", "--partition=short --time=5", "--chunk", "2", "-j", "2"]) == 1
    said = capsys.readouterr().out
    assert "ada: 3 of 12 points" in said and "bob: not graded. bob.ipynb is not a notebook: it is not JSON." in said
    assert said.endswith("2 graded, 1 could not be graded: grades/grades.csv\n")
    assert {name: row["points"] for name, row in table(tmp_path).items()} == {"ada": "3", "bob": "", "eve": "0"}
    options = (sbatch / "options").read_text(encoding="utf-8").split("\n")
    assert {"--array=0-1", "--cpus-per-task=2", "--partition=short", "--time=5", "--wait"} <= set(options)
    manifest = json.loads((tmp_path / "grades" / "slurm" / "manifest.json").read_text(encoding="utf-8"))
    assert [[one["student"] for one in task] for task in manifest["tasks"]] == [["ada", "bob"], ["eve"]]
    assert not (sbatch / "cancelled").exists()


def test_a_lost_task_is_graded_by_the_next_run(handed, tmp_path, sbatch, capsys):
    (sbatch / "lose-0").touch()
    assert main([*COMMAND, "--slurm", "--chunk", "1"]) == 1
    assert "ada: not graded. The job ended without a grade" in capsys.readouterr().out
    assert (table(tmp_path)["ada"]["status"], table(tmp_path)["eve"]["points"]) == ("failed", "0")
    (sbatch / "lose-0").unlink()
    assert main([*COMMAND, "--slurm", "--chunk", "1"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("1 of 3 are graded already.\n") and "ada: 3 of 12 points" in said
    manifest = json.loads((tmp_path / "grades" / "slurm" / "manifest.json").read_text(encoding="utf-8"))
    assert [task[0]["student"] for task in manifest["tasks"]] == ["ada", "bob"]


def test_a_zip_lies_where_the_nodes_see_it(handed, tmp_path, sbatch):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.write(handed / "ada.ipynb", "ada.ipynb")
    before = tmp_path / "grades" / "slurm" / "handed" / "gone.ipynb"  # of a student who has left the class
    before.parent.mkdir(parents=True)
    before.touch()
    (sbatch / "refuse").touch()
    assert main([*COMMAND[:2], "class.zip", *COMMAND[3:], "--slurm"]) == 2
    assert (tmp_path / "grades" / "slurm" / "handed" / "ada.ipynb").exists()
    assert not before.exists()


def test_an_interrupted_run_cancels_its_job(handed, sbatch, monkeypatch, capsys):
    (sbatch / "sbatch").write_text("#!/bin/sh\necho 42\nexec sleep 60\n", encoding="utf-8")

    def interrupted(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(slurm.time, "sleep", interrupted)
    assert main([*COMMAND, "--slurm"]) == 130
    monkeypatch.undo()
    assert (sbatch / "cancelled").read_text(encoding="utf-8") == "42\n"


def test_what_cannot_be_done_is_one_sentence(handed, sbatch, capsys, monkeypatch):
    (sbatch / "refuse").touch()
    assert main([*COMMAND, "--slurm"]) == 2
    assert capsys.readouterr().err == "Slurm did not take the job: sbatch: error: invalid partition\n"
    (sbatch / "sbatch").unlink()
    monkeypatch.setenv("PATH", str(sbatch))
    assert main([*COMMAND, "--slurm"]) == 2
    assert capsys.readouterr().err.startswith("sbatch is missing: use --slurm on a machine from which")
