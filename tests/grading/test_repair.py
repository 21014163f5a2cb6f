"""A damaged notebook is graded as the master with the student's answers, and every repair is reported."""

import copy
import json

import pytest
from grading.demo_lab import TRUSTED, demo_lab

import rooflab
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError, read_notebook
from rooflab.grading.lab.repair import as_notebook, read_submission, repair


@pytest.fixture(scope="module")
def lab():
    return demo_lab()


@pytest.fixture
def cells(lab):
    """Raw cells of a perfect submission: the student notebook with the reference answers in it."""
    notebook = release.build(lab)
    for cell, raw in zip(lab.cells, notebook.cells, strict=True):
        if cell.role == "solution":
            raw.source = cell.source
    return notebook.cells


def at(cells, key):
    return next(i for i, cell in enumerate(cells) if cell.metadata.get("nbgrader", {}).get("grade_id") == key)


def grade(lab, cells, *questions):
    submission, judge = repair(lab, cells), Judge(lab, TRUSTED)
    earned = [judge.grade_question(one, submission).earned for one in questions or lab.questions]
    return earned, " ".join(submission.repairs)


@pytest.mark.parametrize("version", ["0.1.0", None, 7, "0.1.0; see\x1b[1m", "1" * 50, rooflab.__version__])
def test_a_notebook_of_another_version_is_said_to_be_one(lab, tmp_path, version):
    notebook = release.build(lab)
    notebook.metadata.rooflab["version"] = version
    (path := tmp_path / "lab9.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    repairs = read_submission(lab, path).repairs
    assert len(repairs) == (version == "0.1.0")
    assert not repairs or repairs[0].startswith(f"The notebook is of rooflab 0.1.0, and {rooflab.__version__} grades")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_ends_of_lines_of_other_systems_need_no_repair(lab, cells, tmp_path, end):
    notebook = release.build(lab)
    for cell, raw in zip(notebook.cells, cells, strict=True):
        cell.source = raw.source.replace("\n", end)
    (path := tmp_path / "lab9.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    submission = read_submission(lab, path)
    assert submission.repairs == [] and submission.cells == repair(lab, cells).cells


def test_an_undamaged_notebook_needs_no_repair(lab, cells):
    assert grade(lab, cells) == ([5, 3, 4, 3], "")


def test_a_missing_test_is_restored(lab, cells):
    del cells[at(cells, "q1_test")]
    earned, said = grade(lab, cells, "q1")
    assert earned == [5] and said == "Test q1_test was missing; it was restored."


def test_a_missing_answer_is_not_answered(lab, cells):
    del cells[at(cells, "q2_1")]
    earned, said = grade(lab, cells, "q1", "q2_1")
    assert earned == [5, 0] and "Answer q2_1 is missing" in said


def test_edited_tests_and_setup_come_from_the_master(lab, cells):
    cells[at(cells, "q1")].source = "def gemm(a, b):\n    return a"
    cells[at(cells, "q1_test")].source = "pass"
    setup = next(cell for cell in cells if "SIDE" in cell.source)
    setup.source = "import numpy as np\nSIDE = 2\nnp.array_equal = lambda *a: True"
    earned, said = grade(lab, cells, "q1", "b2_2")
    assert earned == [0, 3] and "Test q1_test differs from this release" in said and "A setup cell differs from" in said


def test_forged_points_do_not_count(lab, cells):
    cells[at(cells, "q1_test")].metadata.nbgrader.points = 1000
    cells[at(cells, "q2_1")].metadata.nbgrader.update(grade=True, points=50)
    cells.append(copy.deepcopy(cells[at(cells, "q1_test")]))
    cells[-1].metadata.nbgrader.update(grade_id="q9_test", points=77)
    cells[-1].id = "q9_test"
    submission = repair(lab, cells)
    assert sum(result.points for result in Judge(lab, TRUSTED).grade(submission)) == 15
    said = " ".join(submission.repairs)
    assert "points 1000 instead of 5" in said and "q2_1 has metadata that differ" in said and "claimed points" in said


def test_order_is_restored(lab, cells):
    cells.reverse()
    earned, said = grade(lab, cells)
    assert earned == [5, 3, 4, 3] and "order was restored" in said


@pytest.mark.parametrize("first", [True, False])
def test_of_two_answers_the_written_one_is_taken(lab, cells, first):
    where = at(cells, "q1")
    stub = copy.deepcopy(cells[where])
    stub.source = next(cell.public for cell in lab.cells if cell.key == "q1")
    cells.insert(where + (not first), stub)
    earned, said = grade(lab, cells, "q1")
    assert earned == [5] and said == "Answer q1 is also there as it was handed out; that copy does not count."


def test_an_answer_turned_into_text_is_dropped(lab, cells):
    cells[at(cells, "q1")].cell_type = "markdown"
    earned, said = grade(lab, cells, "q1")
    assert earned == [0] and "had become a markdown cell" in said


def test_cells_without_metadata_are_found_by_id(lab, cells):
    for cell in cells:
        cell.metadata = {}
    assert grade(lab, cells, "q1", "b2_2")[0] == [5, 3]


def test_a_helper_in_a_cell_of_the_students_own(lab, cells):
    from nbformat.v4 import new_code_cell

    cells[at(cells, "q2_1")].source = "corner = helper()"
    cells.insert(at(cells, "q2_1"), new_code_cell("%matplotlib inline\n!ls\ndef helper():\n    return 50.39"))
    assert grade(lab, cells, "q2_1") == ([3], "")
    cells.insert(at(cells, "q1_test") + 1, new_code_cell("1 / 0"))
    assert grade(lab, cells, "q1")[0] == [5]


def test_an_answer_that_lost_its_marks_is_found_by_what_it_defines(lab, cells):
    answer = cells[at(cells, "b2_2")]
    answer.metadata, answer.id = {}, "new"
    earned, said = grade(lab, cells, "b2_2", "q1")
    assert earned == [3, 5] and "Answer b2_2 was found in another cell." in said


def test_two_answers_in_one_cell_count_for_both_questions(lab, cells):
    second = cells.pop(at(cells, "b2_2"))
    cells[at(cells, "q1")].source += "\n\n" + second.source
    earned, said = grade(lab, cells, "q1", "b2_2")
    assert earned == [5, 3] and "Answer b2_2 was found in another cell." in said


@pytest.mark.parametrize("right", ["q1", "q2_2"])
def test_of_two_other_answers_that_define_a_lost_one_the_last_counts_as_in_jupyter(lab, cells, right):
    lost = cells.pop(at(cells, "b2_2")).source
    for key in ("q1", "q2_2"):
        cells[at(cells, key)].source += "\n\n" + (lost if key == right else "def refuse(x):\n    return x")
    assert grade(lab, cells, "b2_2")[0] == [3 * (right == "q2_2")]


def test_an_answer_in_two_cells_is_one(lab, cells):
    from nbformat.v4 import new_code_cell

    where = at(cells, "q1")
    _, body = cells[where].source.split("\n", 1)
    cells[where].source = "def product(a, b):\n" + body
    cells.insert(where + 1, new_code_cell("gemm = product"))
    assert grade(lab, cells, "q1", "q2_2")[0] == [5, 4]


def test_an_answer_that_is_nowhere_is_missing(lab, cells):
    cells.pop(at(cells, "b2_2"))
    earned, said = grade(lab, cells, "b2_2")
    assert earned == [0] and "b2_2 is missing: not answered" in said


@pytest.mark.parametrize(
    "metadata",
    [{"nbgrader": 3}, {"nbgrader": {"grade_id": [1]}}, {"nbgrader": {"grade_id": "q1", "points": {}}}, {"tags": 3}, {}],
    ids=str,
)
def test_odd_metadata_do_no_harm(lab, cells, metadata):
    cells[at(cells, "q1")].metadata = metadata
    assert grade(lab, cells, "q1")[0] == [5]


def damaged(text, kind):
    whole = json.loads(text)
    match kind:
        case "not JSON":
            return text[: len(text) // 2]
        case "empty":
            return ""
        case "a list":
            return "[]"
        case "no cells":
            del whole["cells"]
        case "cells are text":
            whole["cells"] = "all of them"
        case "a cell is a number":
            whole["cells"][2] = 7
        case "a cell without source":
            del whole["cells"][2]["source"]
        case "very deep":
            return "[" * 100_000
        case "old":
            return '{"nbformat": 1, "nbformat_minor": 0, "metadata": {}, "cells": []}'
    return json.dumps(whole)


@pytest.mark.parametrize(
    "kind",
    [
        "not JSON",
        "empty",
        "a list",
        "no cells",
        "cells are text",
        "a cell is a number",
        "a cell without source",
        "very deep",
    ],
)
def test_what_is_no_notebook_is_one_sentence(lab, tmp_path, kind):
    path = tmp_path / "my.ipynb"
    path.write_text(damaged(release.dumps(release.build(lab)), kind), encoding="utf-8")
    with pytest.raises(LabError, match=r"^my\.ipynb is (empty|not a notebook: [^\n]*)\.$"):
        read_submission(lab, path)


def test_bytes_and_absent_files(tmp_path):
    (tmp_path / "a.ipynb").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LabError, match="not JSON"):
        read_notebook(tmp_path / "a.ipynb")
    with pytest.raises(LabError, match=r"There is no file b\.ipynb"):
        read_notebook(tmp_path / "b.ipynb")
    with pytest.raises(LabError, match="cannot be read"):
        read_notebook(tmp_path)


def test_the_repaired_notebook_shows_no_hidden_test(lab, cells):
    text = release.dumps(as_notebook(repair(lab, cells)))
    assert "hidden" not in text and "out[row" in text
