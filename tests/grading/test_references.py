"""What hidden tests compare with is in the judge and in the solved notebook, and nowhere else."""

import pytest
from grading.demo_lab import SOURCE, TRUSTED, with_answers

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError, from_source, public_half
from rooflab.grading.lab.repair import read_submission
from rooflab.grading.lab.students import from_notebook

REFERENCES = """# %% tags=["setup"]
### BEGIN HIDDEN TESTS
def known_corner():
    return 50.39


### END HIDDEN TESTS
"""


@pytest.fixture
def lab(tmp_path):
    """The demo lab, whose question 2.1 is compared with a function that only the judge has."""
    text = (SOURCE / "00_demo.py").read_text(encoding="utf-8")
    changed = text.replace("abs(corner - 50.39)", "abs(corner - known_corner())")
    assert changed != text
    folder = tmp_path / "lab9"
    folder.mkdir()
    first, rest = changed.split("# %% nbgrader", 1)
    for name, part in {
        "00_demo.py": first,
        "01_references.py": REFERENCES,
        "10_demo.py": f"# %% nbgrader{rest}",
    }.items():
        (folder / name).write_text(part, encoding="utf-8")
    return from_source(folder)


def graded(lab, answer):
    return Judge(lab, TRUSTED).grade_question("q2_1", with_answers(lab, {"q2_1": answer}))


@pytest.mark.parametrize(("answer", "earned"), [("corner = 50.39", 3), ("corner = 50.2", 0)])
def test_hidden_tests_use_it(lab, answer, earned):
    assert graded(lab, answer).earned == earned


def test_no_answer_can_use_it(lab):
    result = graded(lab, "corner = known_corner()")
    assert result.earned == 0 and "name 'known_corner' is not defined" in result.tests[0].message


def test_students_get_no_cell_for_it_and_miss_none(lab, tmp_path):
    notebook, solved = release.build(lab), release.build(lab, solved=True)
    assert len(notebook.cells) == len(solved.cells) - 1 and "known_corner" not in release.dumps(notebook)
    marks = next(cell.metadata.nbgrader for cell in solved.cells if "def known_corner" in cell.source)
    assert (marks["grade"], marks["points"]) == (True, 0), "nbgrader takes hidden lines out of graded cells alone"
    path = tmp_path / "lab9_demo.ipynb"
    path.write_text(release.dumps(notebook), encoding="utf-8")
    submission = read_submission(lab, path)
    assert submission.repairs == [] and len(submission.cells) == len(lab.cells)
    assert [cell.key for cell in public_half(lab).cells] == [cell.key for cell in from_notebook(path).cells]


def test_a_public_test_cannot_use_it(lab):
    test = next(cell for cell in lab.cells if cell.key == "q2_1_test")
    shown = (lab.folder / "10_demo.py").read_text(encoding="utf-8").replace("type(corner) is float", "known_corner()")
    (lab.folder / "10_demo.py").write_text(shown, encoding="utf-8")
    with pytest.raises(LabError, match=f"{test.key} uses known_corner, which no public part"):
        release.build(from_source(lab.folder))
