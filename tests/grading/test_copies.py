"""Several cells of one answer: which of them count, whatever a student did to them, and in every door."""

import copy

import nbformat
import pytest
from grading.demo_lab import TRUSTED, demo_lab
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release
from rooflab.grading.lab.model import public_half
from rooflab.grading.lab.repair import repair
from rooflab.grading.lab.students import from_notebook

LAB = demo_lab()
STUBS = {cell.key: cell.public for cell in LAB.cells}
RIGHT = {cell.key: cell.source for cell in LAB.cells}
DRAFT = "def gemm(a, b):\n    return a"
OTHER = "corner = 50.39  # of the roof"


@pytest.fixture
def cells():
    """Raw cells of the student notebook with nothing answered."""
    return release.build(LAB).cells


def at(cells, key):
    return next(i for i, cell in enumerate(cells) if cell.metadata.get("nbgrader", {}).get("grade_id") == key)


def changed(cell, **fields):
    """A copy of a raw cell with other fields."""
    again = copy.deepcopy(cell)
    again.update(fields)
    return again


def put(cells, key, *copies):
    """Replace a cell by copies of it, which may be `(type, source)`, and None for what is not marked."""
    where, made = at(cells, key), []
    for one in copies:
        kind, source = one if isinstance(one, tuple) else ("code", one)
        if kind == "own":
            made.append(new_code_cell(source))
        else:
            made.append(changed(cells[where], cell_type=kind, source=source, id=f"{key}-{len(made)}"))
    cells[where : where + 1] = made


def points(lab, cells, *questions):
    submission, judge = repair(lab, cells), Judge(lab, TRUSTED)
    return [judge.grade_question(one, submission).earned for one in questions], submission


CASES = {
    "a draft above": (5, [DRAFT, RIGHT["q1"]]),
    "a draft below": (0, [RIGHT["q1"], DRAFT]),
    "a draft that is no Python": (5, ["def gemm(a, b:", RIGHT["q1"]]),
    "a draft that raises": (5, ["1 / 0", RIGHT["q1"]]),
    "the stub below": (5, [RIGHT["q1"], STUBS["q1"]]),
    "the stub with a remark below": (5, [RIGHT["q1"], "# my turn\n" + STUBS["q1"] + "\n\n"]),
    "nothing below": (5, [RIGHT["q1"], ""]),
    "a remark below": (5, [RIGHT["q1"], "# done"]),
    "as text above": (5, [("markdown", RIGHT["q1"]), RIGHT["q1"]]),
    "as text below": (5, [RIGHT["q1"], ("raw", "old: " + RIGHT["q1"])]),
    "three of three types": (5, [("markdown", "x"), ("raw", "y"), DRAFT, RIGHT["q1"]]),
    "two halves": (5, ["import numpy as np\nproduct = np.matmul", "def gemm(a, b):\n    return product(a, b)"]),
    "a half without marks": (5, ["import numpy as np", ("own", "gemm = np.matmul")]),
    "a half without marks between": (5, ["import numpy as np", ("own", "f = np.matmul"), "gemm = f"]),
    "in a cell of the student's own below the stub": (5, [STUBS["q1"], ("own", RIGHT["q1"])]),
    "in a cell of the student's own above the stub": (5, [("own", RIGHT["q1"]), STUBS["q1"]]),
}


@pytest.mark.parametrize("case", CASES)
def test_which_copies_count(cells, case):
    expected, copies = CASES[case]
    put(cells, "q1", *copies)
    earned, _ = points(LAB, cells, "q1")
    assert earned == [expected]


@pytest.mark.parametrize("case", CASES)
def test_the_public_tests_run_the_same_cells(cells, case, tmp_path):
    """`lab check` has no master: it makes one from the student's notebook."""
    put(cells, "q1", *CASES[case][1])
    notebook = release.build(LAB)
    notebook.cells = cells
    (tmp_path / "lab9_demo.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
    own = from_notebook(tmp_path / "lab9_demo.ipynb")

    def ran(lab):
        return [
            one.source for one in repair(lab, cells).cells if one.question == "q1" and one.role in ("solution", "extra")
        ]

    assert ran(own) == ran(public_half(LAB))
    assert own.student_names("q1") >= {"gemm"}


def test_a_copy_at_the_end_with_what_it_needs_above_it(cells):
    final = changed(cells[at(cells, "q1")], id="final", source="gemm = helper()")
    cells += [new_code_cell("import numpy\ndef helper():\n    return numpy.matmul"), final]
    assert points(LAB, cells, "q1")[0] == [5]


def test_the_halves_of_an_answer_with_two_functions(cells):
    put(cells, "q1", "def other(a):\n    return a", RIGHT["q1"])
    earned, submission = points(LAB, cells, "q1")
    assert earned == [5]
    assert submission.repairs == [
        "Answer q1 is in 2 cells; they were run one after the other, and the last definition counts."
    ]


@pytest.mark.parametrize(
    "more",
    [
        [new_markdown_cell("Because of the roof.")],
        [new_raw_cell("Because of the roof.")],
        [new_markdown_cell("Because of"), new_markdown_cell("the roof.")],
    ],
)
def test_prose_in_a_cell_below(cells, more):
    where = at(cells, "q2_1_why") + 1
    cells[where:where] = more
    assert " ".join(repair(LAB, cells).findings["2.1"].split()) == "Because of the roof."


@pytest.mark.parametrize("kind", ["markdown", "raw", "code"])
def test_prose_in_copies_of_its_cell(cells, kind):
    put(cells, "q2_1_why", ("markdown", STUBS["q2_1_why"]), (kind, "One."), ("markdown", "Two."))
    submission = repair(LAB, cells)
    assert submission.findings == {"2.1": "One.\n\nTwo."}
    assert "Prose answer q2_1_why is in 2 cells; all of them were taken." in submission.repairs


def test_an_unmarked_copy_of_the_empty_prose_is_no_finding(cells):
    prose = cells[at(cells, "q2_1_why")]
    cells.insert(cells.index(prose) + 1, new_markdown_cell(prose.source))
    assert repair(LAB, cells).findings == {}


def test_notes_where_no_prose_is_asked_for_are_no_findings(cells):
    cells.insert(at(cells, "q1") + 1, new_markdown_cell("my note"))
    cells.insert(0, new_markdown_cell("Ada Lovelace"))
    assert repair(LAB, cells).findings == {}


def test_a_helper_in_a_copy_of_a_locked_cell(cells):
    setup = next(cell for cell in cells if "SIDE" in cell.source)
    helper = changed(setup, id="helper", source="def helper():\n    return 50.39")
    cells.insert(cells.index(setup), helper)
    cells[at(cells, "q2_1")].source = "corner = helper()"
    assert points(LAB, cells, "q2_1")[0] == [3]


@pytest.mark.parametrize("first", [True, False])
def test_of_two_copies_of_a_locked_cell_the_unchanged_one_counts(cells, first):
    """So a test that a student changed in a copy, and left as it was below, is no change."""
    test, place = cells[at(cells, "q1_test")], at(cells, "q1_test")
    cells.insert(place + first, changed(test, id="half", source="assert True  # mine"))
    said = repair(LAB, cells).repairs
    assert any("was there 2 times; one was kept" in note for note in said), said
    assert not any("differs from this release" in note for note in said), said


def test_a_cut_off_test_is_no_cell_of_the_students(cells):
    test = cells[at(cells, "q1_test")]
    half = changed(test, id="half", source=test.source.split("\n")[-1])
    cells.insert(at(cells, "q1_test") + 1, half)
    assert not [cell for cell in repair(LAB, cells).cells if cell.role == "extra"]


def test_without_any_marks_or_ids(cells):
    put(cells, "q1", DRAFT, RIGHT["q1"])
    cells[at(cells, "q2_1")].source = OTHER
    cells[at(cells, "q2_1_why")].source = "Because of the roof."
    for number, cell in enumerate(cells):
        cell.metadata, cell.id = {}, f"c{number}"
    earned, submission = points(LAB, cells, "q1", "q2_1")
    assert earned == [5, 3] and submission.findings == {"2.1": "Because of the roof."}
