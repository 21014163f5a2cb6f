"""nbgrader takes our notebooks, and gives the same points: all for the solution, none for the unsolved one."""

import csv
import os
import shutil
import subprocess

import pytest
from grading.demo_lab import SOURCE, TRUSTED, demo_lab
from labs.sources import SOURCES

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release
from rooflab.grading.lab.model import from_source
from rooflab.grading.lab.repair import read_submission

NEEDED = pytest.mark.skipif(not shutil.which("nbgrader"), reason="nbgrader is not installed: pip install '.[nbgrader]'")
CONFIG = """
config = get_config()
config.CourseDirectory.course_id = "demo"
config.ExecutePreprocessor.timeout = 900
"""


def test_prose_is_graded_by_hand_in_nbgrader():
    """nbgrader refuses a notebook in which prose is a solution that is not graded."""
    cells = {cell["id"]: cell for cell in release.build(demo_lab())["cells"]}
    marks = cells["q2_1_why"]["metadata"]["nbgrader"]
    assert marks["grade"] and marks["solution"] and marks["points"] == 0 and not marks["locked"]
    assert "points" not in cells["q2_1"]["metadata"]["nbgrader"] and not cells["q2_1"]["metadata"]["nbgrader"]["grade"]


@NEEDED
@pytest.mark.parametrize(
    "source", [SOURCE, *(pytest.param(path, marks=pytest.mark.slow) for path in SOURCES)], ids=lambda path: path.name
)
def test_nbgrader_gives_the_same_points(tmp_path, source):
    lab = from_source(source)
    names = {"ada": True, "bob": False}
    for folder, solved in {"source": True, **{f"submitted/{name}": solved for name, solved in names.items()}}.items():
        path = tmp_path / folder / lab.name / f"{lab.stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(release.dumps(release.build(lab, solved=solved)), encoding="utf-8")
    (tmp_path / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for command in (["generate_assignment", lab.name], ["autograde", lab.name], ["export", "--to", "grades.csv"]):
        done = subprocess.run(["nbgrader", *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    with (tmp_path / "grades.csv").open(encoding="utf-8", newline="") as file:
        theirs = {row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)}
    judge = Judge(lab, TRUSTED)
    for name in names:
        submission = read_submission(lab, tmp_path / "submitted" / name / lab.name / f"{lab.stem}.ipynb")
        results = list(judge.grade(submission))
        # A test that is pending here passes in a notebook, because nbgrader has no such state.
        ours = (sum(one.earned + one.pending for one in results), sum(one.points + one.pending for one in results))
        assert theirs[name] == ours, name
    assert theirs["ada"] == (theirs["bob"][1],) * 2 and theirs["bob"][0] == 0
