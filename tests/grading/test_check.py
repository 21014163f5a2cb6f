"""`rooflab lab check` on what students make of a notebook: copied, split and added cells, and edited tests."""

import copy
import json

import pytest
from grading.demo_lab import SOURCE, demo_lab

from rooflab.cli import main
from rooflab.grading.lab import release

ANSWERS = {cell.key: cell.source for cell in demo_lab().cells if cell.role == "solution"}


class Notebook:
    """A student's notebook with the reference answers in it, and short ways to change and to check it."""

    def __init__(self, path):
        self.path, self.raw = path, json.loads(release.dumps(release.build(demo_lab())))
        for key, source in ANSWERS.items():
            self.cells[self.at(key)]["source"] = source

    @property
    def cells(self):
        return self.raw["cells"]

    def at(self, key):
        return next(i for i, cell in enumerate(self.cells) if cell["metadata"]["nbgrader"]["grade_id"] == key)

    def copy(self, key, source=None):
        """Put a copy of a cell behind it, as a notebook's editor does: with its metadata and a new id."""
        again = copy.deepcopy(self.cells[self.at(key)]) | {"id": f"copy-{len(self.cells)}"}
        again["source"] = again["source"] if source is None else source
        self.cells.insert(self.at(key) + 1, again)

    def add(self, before, source):
        cell = {"cell_type": "code", "id": "own", "metadata": {}, "outputs": [], "execution_count": None}
        self.cells.insert(self.at(before), cell | {"source": source})

    def check(self, *more):
        self.path.write_text(json.dumps(self.raw), encoding="utf-8")
        return main(["lab", "check", str(self.path), *more])


@pytest.fixture
def notebook(tmp_path):
    return Notebook(tmp_path / "lab9_demo.ipynb")


def test_a_whole_notebook_needs_no_repair(notebook, capsys):
    assert notebook.check() == 0
    said = capsys.readouterr()
    assert "12 of 12 points" in said.out and "repaired" not in said.out and not said.err


@pytest.mark.slow(id=["its own tests"])
@pytest.mark.parametrize("more", [[], ["--labs", str(SOURCE.parent)]], ids=["its own tests", "those of the sources"])
def test_cells_of_the_students_own(notebook, capsys, more):
    notebook.cells[notebook.at("q2_1")]["source"] = "corner = helper()"
    notebook.add("q2_1", "%matplotlib inline\ndef helper():\n    return 50.39")
    assert notebook.check(*more) == 0
    assert "repaired" not in capsys.readouterr().out


@pytest.mark.slow
def test_copies_of_a_test_count_once(notebook, capsys):
    notebook.copy("q1_test", "print(gemm)")
    notebook.copy("q2_2_test")
    assert notebook.check() == 0
    said = capsys.readouterr().out
    assert "12 of 12 points" in said
    assert "repaired: Test q1_test was there 2 times; one was kept." in said
    assert "repaired: Test q2_2_test was there 2 times; one was kept." in said


@pytest.mark.slow
def test_an_answer_copied_as_it_is(notebook, capsys):
    notebook.copy("q2_1")
    assert notebook.check() == 0
    assert "repaired: Answer q2_1 was there 2 times; one was kept." in capsys.readouterr().out


@pytest.mark.slow(more=[[]])
@pytest.mark.slow(source=["corner = 3.0"])
@pytest.mark.parametrize("more", [[], ["--labs", str(SOURCE.parent)]], ids=["its own tests", "those of the sources"])
@pytest.mark.parametrize(
    "source, said",
    [
        (
            "corner = None  # your number\n# your code here",
            "also there as it was handed out; that copy does not count.",
        ),
        ("corner = 3.0", "in 2 cells; they were run one after the other, and the last definition counts."),
    ],
)
def test_what_was_taken_of_two_different_answers(notebook, capsys, source, said, more):
    notebook.copy("q2_1", source)
    assert notebook.check(*more) == 0
    assert f"repaired: Answer q2_1 is {said}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cell_split_in_two_is_both_halves(notebook, capsys):
    notebook.cells[notebook.at("q1")]["source"] = "import operator"
    notebook.copy("q1", "gemm = operator.matmul")
    assert notebook.check() == 0
    assert "repaired: Answer q1 is in 2 cells; they were run" in capsys.readouterr().out


@pytest.mark.slow
def test_a_copy_as_text_above_the_code(notebook, capsys):
    notebook.copy("q1")
    notebook.cells[notebook.at("q1")] |= {"cell_type": "markdown"}
    assert notebook.check() == 0
    assert "repaired: A markdown copy of Answer q1 does not count.\n" in capsys.readouterr().out


def test_an_empty_test_is_no_pass(notebook, capsys):
    notebook.cells[notebook.at("q2_1_test")]["source"] = "# nothing to run\n\n"
    assert notebook.check() == 2
    said = capsys.readouterr()
    assert said.err == "lab9_demo.ipynb: the test q2_1_test is empty. Copy it from the notebook as you got it.\n"
    assert "points" not in said.out


@pytest.mark.slow
def test_tests_of_a_lab_that_is_known_are_compared_with_those_handed_out(notebook, capsys, monkeypatch):
    handed = notebook.path.with_name("lab9_handed.ipynb")
    handed.write_text(json.dumps(notebook.raw), encoding="utf-8")
    monkeypatch.setattr("rooflab.grading.lab.students.find_notebooks", lambda: [handed])
    notebook.cells[notebook.at("q2_1")]["source"] = "corner = []"
    notebook.cells[notebook.at("q2_1_test")]["source"] = ""
    assert notebook.check() == 1, "the test that was handed out ran"
    assert "repaired: Test q2_1_test differs from this release" in capsys.readouterr().out
    notebook.cells[notebook.at("q2_1_test")]["source"] = "assert True"
    notebook.check()
    assert "Tests that were changed: 2.1. A grade rests on those that were handed out." in capsys.readouterr().out


DAMAGED = {
    "endless points": ("nbgrader", {"grade": True, "grade_id": "q1_test", "points": float("inf")}),
    "fewer than no points": ("nbgrader", {"grade": True, "grade_id": "q1_test", "points": -1}),
    "a limit in words": ("rooflab", {"seconds": "long"}),
    "a limit that is none": ("rooflab", {"memory_gb": float("inf")}),
    "a limit that is no number": ("rooflab", {"seconds": float("nan")}),
    "a number of needs": ("rooflab", {"needs": 5}),
    "needs that are no names": ("rooflab", {"needs": [["q1"]]}),
    "a list of options": ("rooflab", [1]),
}


@pytest.mark.parametrize("name, value", DAMAGED.values(), ids=DAMAGED)
def test_damaged_metadata_of_a_test_are_one_sentence(notebook, capsys, name, value):
    notebook.cells[notebook.at("q1_test")]["metadata"][name] = value
    assert notebook.check() == 2
    assert capsys.readouterr().err == "lab9_demo.ipynb: the metadata of cell q1_test are damaged.\n"


@pytest.mark.slow(about=[None, "lab9"])
@pytest.mark.parametrize("about", [None, "lab9", {"lab": ["lab9"]}])
def test_damaged_metadata_of_a_notebook_cost_nothing(notebook, capsys, about):
    notebook.raw["metadata"]["rooflab"] = about
    assert notebook.check() == 0, capsys.readouterr()


@pytest.mark.slow
def test_cells_without_ids_are_no_warning(notebook, capsys, recwarn):
    for cell in notebook.cells:
        cell.pop("id", None)
    assert notebook.check() == 0
    assert not [warning for warning in recwarn if "nbformat" in warning.filename] and not capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "{}", '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": null}'])
def test_json_that_is_no_notebook(tmp_path, capsys, text):
    (tmp_path / "my.ipynb").write_text(text, encoding="utf-8")
    assert main(["lab", "check", str(tmp_path / "my.ipynb")]) == 2
    why = "it is JSON without a list of cells, each with a type and a source"
    assert capsys.readouterr().err == f"my.ipynb is not a notebook: {why}.\n"
