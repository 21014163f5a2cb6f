"""`rooflab lab verify`: a lab's own answers are graded as they should be, or the table says which are not."""

import re
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, RIGHT, SOURCE

from rooflab.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ["lab", "verify", "lab9", "--labs", str(SOURCE.parent), *GRADE[2:]]
SEED = re.compile(r" with seed \d+")
TRANSPOSED = RIGHT.replace("return out", "return out.T")
ANSWERS = f"""
from {{package}}.parts import WRONG

RIGHT = {{{{"q1": [("loops", {RIGHT!r})], "b2_2": {{right!r}}}}}}
"""
PARTS = f"""
WRONG = {{{{"q1": [("transposed", {TRANSPOSED!r}), ("nothing", "gemm = None")],
          "q2_1": {{wrong!r}}}}}}
"""


def answers(folder, right=(), wrong=()):
    """A folder of answers to the demo lab, as a package with a file that the other imports."""
    folder.mkdir()
    text = ANSWERS.format(package=folder.name, right=list(right))
    (folder / "lab9_answers.py").write_text(text, encoding="utf-8")
    (folder / "parts.py").write_text(PARTS.format(wrong=list(wrong)), encoding="utf-8")
    return [*COMMAND, "--answers", str(folder)]


@pytest.mark.slow  # as others below, it grades a lab over and over
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_lab_that_grades_as_it_should(tmp_path, capsys, jobs):
    wrong = [(letter, f"corner = {letter}.0") for letter in "1234"]
    assert main([*answers(tmp_path / f"good_answers_{jobs}", wrong=wrong), "--jobs", str(jobs)]) == 0
    assert capsys.readouterr().out.split("\n") == [
        "Lab 9: A lab to test the grading with",
        "question  points  solution   right   wrong  unsolved",
        "1              5         5  1 of 1  2 of 2         0",
        "2.1            3         3       -  4 of 4         0",
        "2.2            4         4       -       -         0",
        "b2.2           3         3       -       -         0",
        "fewer than 4 wrong answers: 1",
        "nothing secret is in the notebook",
        "",
        "1 of 1 labs grade their answers as they should.",
        "",
    ]


@pytest.mark.parametrize("text", ["RIGHT = WRONG = {'q1': {'a label': 'gemm = None'}}", "RIGHT = WRONG = {'q1': 'ab'}"])
def test_answers_that_are_no_pairs(tmp_path, capsys, text):
    (tmp_path / "lab9_answers.py").write_text(text, encoding="utf-8")
    assert main([*COMMAND, "--answers", str(tmp_path)]) == 2
    assert (
        "lab9_answers.py fails: TypeError: RIGHT and WRONG map a grade_id to a list of pairs" in capsys.readouterr().err
    )


def test_the_lab_of_the_instructors_page(tmp_path, capsys):
    page = (ROOT / "notebooks" / "INSTRUCTORS.md").read_text(encoding="utf-8")
    (tmp_path / "lab8").mkdir()
    text = re.search(r"^```python\n(# ---\n.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "lab8" / "00_ridge.py").write_text(text, encoding="utf-8")
    assert main(["lab", "verify", "lab8", "--labs", str(tmp_path), *GRADE[2:]]) == 0
    assert main(["lab", "build", "lab8", "--labs", str(tmp_path), "--output", str(tmp_path)]) == 0
    assert "lab8_ridge.ipynb: 2 questions, 5 points\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_lab_in_a_short_path_and_without_answers(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(SOURCE.parent.parent)
    assert main(["lab", "verify", "lab9", "--labs", SOURCE.parent.name, *GRADE[2:]]) == 0
    assert "neither right nor wrong answers were graded\n" in capsys.readouterr().out


@pytest.mark.slow
def test_an_answer_that_is_graded_wrongly(tmp_path, capsys):
    right = [("no error", "def refuse(x):\n    return x")]
    wrong = [("right after all", "corner = 50.39")]
    assert main(answers(tmp_path / "bad_answers", right, wrong)) == 1
    said = capsys.readouterr().out
    assert len(re.findall(r"points with seed \d+\.", said)) == 2  # so that it can be graded again with the same inputs
    said = SEED.sub("", said)
    assert "NOT AS EXPECTED: 2.1 wrong right after all: 3 of 3 points.\n" in said
    assert "NOT AS EXPECTED: b2.2 right no error: 0 of 3 points. hidden: -1 was taken\n" in said
    assert said.count("NOT AS EXPECTED") == 2 and said.endswith("0 of 1 labs grade their answers as they should.\n")


@pytest.mark.slow
def test_the_quick_form(capsys):
    assert main([*COMMAND, "--quick", "-j", "2"]) == 0
    said = capsys.readouterr().out.split("\n")
    assert said[1:3] == [
        "question  points  solution  right  wrong  unsolved",
        "1              5         5  -      -             0",
    ]
    assert said[-4:] == [
        "nothing secret is in the notebook",
        "",
        "1 of 1 labs grade their answers as they should.",
        "",
    ]


def source(folder, old, new):
    """The demo lab with a line of its source changed."""
    (folder / "lab9").mkdir()
    text = (SOURCE / "00_demo.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "lab9" / "00_demo.py").write_text(text.replace(old, new), encoding="utf-8")
    return ["--labs", str(folder)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "old, new, said",
    [
        ("corner = None  # your number", "corner = 50.39", "2.1 unsolved: 3 of 3 points."),
        ("corner = 50.39\n### END", "corner = 5.0\n### END", "2.1 solution: 0 of 3 points. hidden: wrong corner"),
        ('tags=["setup"]', 'tags=["setup", "50.39"]', "a secret value is left in the notebook"),
    ],
)
def test_a_lab_that_is_not_fit(tmp_path, capsys, old, new, said):
    assert main([*COMMAND[:3], *source(tmp_path, old, new), *GRADE[2:]]) == 1
    assert said in SEED.sub("", capsys.readouterr().out)


@pytest.mark.parametrize(
    "text, said",
    [
        ("1 / 0", "lab9_answers.py fails: ZeroDivisionError: division by zero"),
        ("RIGHT = {}", "lab9_answers.py fails: KeyError: 'WRONG'"),
        ("RIGHT, WRONG = {}, {'q7': []}", "The answers name the solution cell q7, which lab9 does not have."),
    ],
)
def test_a_file_of_answers_that_cannot_be_used(tmp_path, capsys, text, said):
    (tmp_path / "lab9_answers.py").write_text(text, encoding="utf-8")
    assert main([*COMMAND, "--answers", str(tmp_path)]) == 2
    assert capsys.readouterr().err == said + "\n"


def test_answers_to_a_question_without_tests(tmp_path, capsys):
    mark = '# %% nbgrader={"grade_id": "q1", "solution": true}'
    labs = source(tmp_path, mark, mark.replace("q1", "q0_1") + f"\nschedule = None\n\n{mark}")
    (tmp_path / "lab9_answers.py").write_text("RIGHT = WRONG = {'q0_1': [('two', 'schedule = 2')]}", encoding="utf-8")
    assert main([*COMMAND[:3], *labs, "--answers", str(tmp_path), *GRADE[2:]]) == 2
    assert capsys.readouterr().err == "The answers name the solution cell q0_1, but its question has no tests.\n"
