"""Cells that IPython runs and plain Python does not: what they do when they are graded."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from grading.demo_lab import TRUSTED, demo_lab, grade_one

from rooflab.grading.judge import judge
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import LabError, read_notebook
from rooflab.grading.lab.repair import reference

QUOTED = """
text = '''
%%time
!ls
'''
corner = 50.39 if text.split() == ["%%time", "!ls"] else 0
"""


@pytest.mark.parametrize(
    "code",
    [
        "%%time\ncorner = 50.39",
        "%%capture shown\n\n%matplotlib inline\ncorner = 50.39",
        "%%time\n%%time\n!ls\ncorner = 50.39",
        "%time corner = 50.39",
        "corner = %time 50 + 0.39",
        "%time corner = (50.39)\nfiles = !ls\ncorner += len(files)",
        "%matplotlib inline\n%config InlineBackend.figure_format = 'svg'\ncorner = 50.39",
        "files = !ls -l\ncorner = 50.39 + len(files)",
        "files = %sx ls -l\ncorner = 50.39 + len(files)",
        "a = 2\nt = %timeit -n 10 -r3 -o a - 1\ncorner = 50.39 if t.average == t.best == t.all_runs[0] > 0 else 0",
        "def f(a):\n    t = %timeit -qon1 sum(a for _ in [a])\n    return t\ncorner = 50.39 if f(2).best > 0 else 0",
        "a = []\n%prun -q -s cumulative -l 5 a.append(50.39)\ncorner, = a",
        "def f(seen):\n    %time [seen.append(50.39) for _ in range(1)]\n    return seen\ncorner, = f([])",
        "!pip install numpy\nif True:\n    !ls\n    corner = 50.39",
        "corner = 50.39\ncorner?",
        "get_ipython().run_line_magic('matplotlib', 'inline')\ncorner = 50.39",
        "display('a corner', raw=True)\ncorner = 50.39",
        "import asyncio\nasync def find():\n    await asyncio.sleep(0)\n    return 50.39\ncorner = await find()",
        "import asyncio\n%time corner = 50.39\nawait asyncio.sleep(0)",
        QUOTED,
    ],
)
def test_what_a_notebook_runs_is_graded(code):
    result = grade_one("q2_1", code)
    assert result.earned == 3, result.tests[0].message


@pytest.mark.parametrize(
    "code, why",
    [
        ("%%bash\ncorner = 50.39", "corner is not defined"),
        ("%%timeit\ncorner = 50.39", "corner is not defined"),
        ("%%writefile x.py\ncorner = 50.39", "corner is not defined"),
        ("corner = (50.39", "SyntaxError"),
        ("corner = %%", "SyntaxError"),
    ],
)
def test_and_no_more(code, why):
    result = grade_one("q2_1", code)
    assert result.earned == 0 and why in result.tests[0].message, result.tests[0].message


def test_a_test_says_too_why_another_one_did_not_define_its_helpers():
    whole = demo_lab()
    at, cell = next((at, cell) for at, cell in enumerate(whole.cells) if cell.key == "q2_1_test")
    tests = [
        replace(cell, source="def check():\n    assert corner\ncheck()"),
        replace(cell, key="more", source="check()"),
    ]
    result = grade_one(
        "q2_1", "corner = (50.39", replace(whole, cells=[*whole.cells[:at], *tests, *whole.cells[at + 1 :]])
    )
    assert len({test.message for test in result.tests}) == 1
    assert result.tests[1].message.startswith("corner is not defined. (Cell q2_1 had stopped: SyntaxError")


def test_an_error_names_the_students_line():
    assert "line 3" in grade_one("q2_1", "%%time\n!ls\ncorner = 1 / 0").tests[0].message


@pytest.mark.parametrize("source", ["\x00", "(" * 500, "%%", "?", "!", "%", "\\", "'''", "a = !", "\ud800"])
def test_any_text_comes_back_as_text(source):
    assert isinstance(as_python(source), str)


def test_plain_python_is_left_alone():
    for cell in reference(demo_lab()).cells:
        if cell.role == "solution":
            assert as_python(cell.source) == cell.source


def test_a_notebook_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "my.ipynb"
    whole = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole), encoding="utf-8-sig")
    assert read_notebook(path)["cells"] == []


def test_a_notebook_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(labs, "MAX_NOTEBOOK_BYTES", 2**16)
    path = tmp_path / "my.ipynb"
    cells = [{"cell_type": "markdown", "metadata": {}, "source": "x" * 2**14} for _ in range(5)]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}), encoding="utf-8")
    with pytest.raises(LabError, match=r"^my.ipynb is larger than 0 MiB without its outputs: "):
        read_notebook(path)
    monkeypatch.setattr(labs, "MAX_MARKS", 9)
    with pytest.raises(LabError, match=r"^my.ipynb has too many outputs: clear its outputs and save it again\.$"):
        read_notebook(path)
    monkeypatch.setattr(labs, "MAX_FILE_BYTES", 2**16)
    with pytest.raises(LabError, match=r"^my.ipynb is larger than 0 MiB: clear its outputs and save it again\.$"):
        read_notebook(path)


def test_metadata_of_many_parts_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(labs, "MAX_PARTS", 100)
    path, kept = tmp_path / "my.ipynb", {"nbgrader": {"grade_id": "q1"}}
    cell = {"cell_type": "code", "execution_count": 1, "source": "1 + 1", "outputs": [], "id": "q1"}
    cell["metadata"] = kept | {"mine": [{}] * 100}
    whole = {"cells": [cell], "metadata": {"rooflab": {}, "mine": [{}] * 100}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(whole), encoding="utf-8")
    notebook = read_notebook(path)
    assert notebook["metadata"] == {"rooflab": {}} and notebook["cells"][0]["metadata"] == kept
    assert notebook["cells"][0]["source"] == "1 + 1"


@pytest.mark.parametrize("minor", [1, 5])
def test_outputs_and_pictures_do_not_make_a_notebook_too_large(tmp_path, monkeypatch, minor):
    monkeypatch.setattr(labs, "MAX_NOTEBOOK_BYTES", 2**16)
    shown = [{"output_type": "stream", "name": "stdout", "text": "x" * 2**17}]
    code = {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": "1 + 1", "outputs": shown}
    text = {
        "cell_type": "markdown",
        "metadata": {},
        "source": "y",
        "attachments": {"a.png": {"image/png": "z" * 2**17}},
    }
    whole = {"cells": [code, text], "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    (tmp_path / "my.ipynb").write_text(json.dumps(whole), encoding="utf-8")
    cells = read_notebook(tmp_path / "my.ipynb")["cells"]
    assert [(cell["source"], len(cell.get("outputs", []))) for cell in cells] == [("1 + 1", 0), ("y", 0)]


def test_a_students_own_cells_take_none_of_the_questions_time(monkeypatch):
    """Except for the time that all of them together take beyond a minute."""
    spent = {"answer": 5.0, "first": 50.0, "second": 25.0, "third": 0.0}
    asked = {}

    class Worker:
        """A worker that would be lost at `deadline`. Only cells make its clock go on."""

        deadline, now = 60.0, 0.0

        def cpu_seconds(self):
            return self.now

        def ask(self, kind, key, source):
            asked[key] = self.deadline
            self.now += spent.get(key, 0.0)
            if key == "second":
                raise ZeroDivisionError

    worker = Worker()
    monkeypatch.setattr(judge, "time", SimpleNamespace(monotonic=lambda: worker.now))
    cells = [labs.Cell(key, "solution" if key == "answer" else "extra", "", "", "q1") for key in spent]
    ((stopped, said),) = judge.Judge(demo_lab(), TRUSTED)._prepare("q1", worker, cells, {})
    assert {key: asked[key] for key in spent} == {"answer": 60, "first": 120, "second": 120, "third": 120}
    assert worker.deadline == 120 and worker.now == 80, (
        "40 of 60 s are left: 80 s passed, 60 of them not the question's"
    )
    assert stopped.key == "second" and said.startswith("(Cell second had stopped")
