"""What a notebook shows below a test cell, in an IPython shell."""

import re
import subprocess
import sys

import pytest
from grading.demo_lab import demo_lab

from rooflab.grading.lab import release, titles
from rooflab.grading.measure.verdicts import Verdicts

TITLE = "# @title Test of 1.3, backward (2 points): answer\n"


@pytest.fixture
def notebook(capsys):
    """A function that runs a cell, and returns what it showed, without colours; and the verdicts of the shell."""
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    verdicts = Verdicts(shell)

    def run(source):
        capsys.readouterr()
        result = shell.run_cell(source, store_history=True)
        return result.success, re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out).rstrip("\n")

    yield run, verdicts
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_test_that_passes_says_so(notebook):
    run, _ = notebook
    assert run(f"{TITLE}assert 1, 'no'") == (True, "1.3, backward: passed")
    assert run("assert 1, 'no'") == (True, "")


def test_a_test_that_fails_shows_its_sentence_and_no_helper(notebook):
    run, _ = notebook
    run("def answer(x):\n    return x")
    good, shown = run(f"{TITLE}def check(x):\n    assert answer(x) > x, 'answer: expected more than x'\n\n\ncheck(3)")
    assert not good
    assert shown == "1.3, backward failed: answer: expected more than x\n  line 6 of the test:  check(3)"


def test_an_error_in_the_students_code_shows_its_line(notebook):
    run, _ = notebook
    run("def answer(x):\n    y = 0\n    return x / y")
    good, shown = run(f"{TITLE}def check(x):\n    assert answer(x), 'no'\n\n\ncheck(3)")
    assert not good
    assert shown.split("\n") == [
        "1.3, backward failed: ZeroDivisionError: division by zero",
        "  cell In[1], line 3, in answer:  return x / y",
        "  line 6 of the test:  check(3)",
    ]


@pytest.mark.parametrize(
    "error, said",
    [
        ("AssertionError()", "failed: AssertionError"),
        ("NotImplementedError('Question 1.3: write your code here')", "failed: Question 1.3: write your code here"),
        ("CannotRun('There is no g++ here')", "cannot be decided on this machine: There is no g++ here"),
    ],
)
def test_errors_that_are_no_wrong_values(notebook, error, said):
    run, _ = notebook
    run("from rooflab.grading.measure.kernel import CannotRun")
    run(f"def answer():\n    raise {error}")
    good, shown = run(f"{TITLE}answer()")
    assert not good and shown.startswith(f"1.3, backward {said}\n")
    assert ("  cell In" in shown) == ("Question" not in said)


def test_other_cells_keep_their_traceback(notebook):
    run, _ = notebook
    run(f"{TITLE}assert 0, 'no'")
    for error in ("1 / 0", "raise NotImplementedError('later')"):
        good, shown = run(error)
        assert not good and "Traceback" in shown and "failed:" not in shown


def test_another_cell_says_which_answer_it_lacks(notebook):
    run, _ = notebook
    run("def answer(x):\n    raise NotImplementedError('Question 1.3: write your code here')")
    good, shown = run("from functools import reduce\nreduce(lambda x, y: answer(y), [1, 2])")
    assert not good
    assert shown.split("\n") == [
        "This cell needs an answer that is not written yet. Question 1.3: write your code here",
        "  line 2 of this cell:  reduce(lambda x, y: answer(y), [1, 2])",
    ]
    assert "Traceback" in run("1 / 0")[1]


@pytest.mark.parametrize("value", ['None  # r"""..."""', "{'a': None}", "[]"])
def test_a_value_that_is_not_written_is_named_also_behind_a_cell_that_lacks_it(notebook, value):
    run, _ = notebook
    run(f"SOURCE = {value}\n# your code here")
    lacks = "This cell needs an answer that is not written yet. SOURCE: write your code here\n  line 2 of this cell:  "
    assert run("found, rows = {}, []\nfound['x'] = SOURCE[7]['a'].run()") == (
        False,
        f"{lacks}found['x'] = SOURCE[7]['a'].run()",
    )
    assert run("0\nfound['x']") == (False, f"{lacks}found['x']")
    assert "Traceback" in run("rows = [1]\nrows[1]")[1], "what a cell sets itself it does not lack"
    run("SOURCE = [3]\n# your code here")
    run("found, rows = {}, []")
    assert "Traceback" in run("found['x'] = SOURCE[7]")[1] and "Traceback" in run("rows[0]")[1]


def test_a_name_that_the_cells_above_define(notebook):
    run, _ = notebook
    said = "NameError: name 'other' is not defined"
    assert run(f"{TITLE}other(3)")[1].startswith(
        f"1.3, backward failed: {said}. Write and run the cells above this one first.\n"
    )
    run("def answer(x):\n    return other")
    assert run(f"{TITLE}answer(3)")[1].startswith(f"1.3, backward failed: {said}\n  cell In[2], line 2, in answer")


def test_the_whole_traceback_is_there_on_request(notebook):
    run, _ = notebook
    run(f"{TITLE}def check():\n    assert 0, 'no'\n\ncheck()")
    _, shown = run("%tb")
    assert "Traceback" in shown and "assert 0" in shown


def test_what_this_machine_cannot_decide_has_not_passed(notebook):
    run, verdicts = notebook
    run("wait = None")
    shown = []
    verdicts._shell.user_ns["wait"] = verdicts.waits
    shown.append(run(f"{TITLE}wait('There is no g++ here.')"))
    shown.append(run(f"{TITLE}pass"))
    shown.append(run("wait('There is no g++ here.')"))
    assert shown == [
        (True, "1.3, backward cannot be decided on this machine: There is no g++ here."),
        (True, "1.3, backward: passed"),
        (True, "There is no g++ here."),
    ]


@pytest.mark.slow
def test_a_notebook_that_imports_measure_has_verdicts():
    """In a process of its own, because it is the import that does it. In plain Python the import loads no IPython."""
    pytest.importorskip("IPython")
    plain = (
        "import sys; from rooflab.grading import measure; print('IPython' in sys.modules, measure._pending is print)"
    )
    assert _python(plain) == "False True"
    shell = "from IPython.core.interactiveshell import InteractiveShell as I; s = I.instance(); s.run_cell({!r}); {}"
    cell, test = "from rooflab.grading import measure", f"{TITLE}measure.pending('because')"
    said = _python(shell.format(cell, f"s.run_cell({test!r})"))
    assert said == "1.3, backward cannot be decided on this machine: because"


def _python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_test_cells_are_folded_below_a_line_that_says_what_they_check():
    notebook = release.build(demo_lab())
    tests = [
        cell for cell in notebook.cells if "grade" in cell.metadata.nbgrader and cell.source.startswith("# @title")
    ]
    assert len(tests) == sum(cell.role == "test" for cell in demo_lab().cells) > 3
    for cell in tests:
        assert cell.metadata.jupyter == {"source_hidden": True} and cell.metadata.cellView == "form"
        assert titles.test_of(cell.source)
    others = [cell for cell in notebook.cells if cell not in tests]
    assert not any("cellView" in cell.metadata or "jupyter" in cell.metadata for cell in others)


def test_a_title_names_the_students_names_that_are_read_even_by_earlier_tests():
    earlier = "def check(x):\n    assert answer(x) == other, 'no'"
    names = titles.checked("z = third\ncheck(3)\ncheck(4)", [earlier], {"answer", "other", "third", "unused"})
    assert names == ["third", "answer", "other"]
    recursive = "def check(x):\n    return check(x - 1) if x else answer"
    assert titles.checked("check(3)", [recursive], {"answer"}) == ["answer"]


@pytest.mark.parametrize("source", ["", "x = 1", "# @title My own cell", "# Test of 1.3 (2 points)", TITLE[2:]])
def test_a_cell_of_the_students_own_is_no_test(source):
    assert titles.test_of(source) == ""
