"""A grade comes before its report: a report that fails costs a sentence and exit code 3, and not the grade."""

import errno
import json
import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, demo_lab, grade_one
from nbformat.v4 import new_output

from rooflab.cli import main
from rooflab.grading.classroom import report
from rooflab.grading.classroom.marking import Mark
from rooflab.grading.classroom.report import Grade, table
from rooflab.grading.judge import execute
from rooflab.grading.judge.judge import Judge, QuestionResult
from rooflab.grading.lab import fingerprint
from rooflab.grading.lab.repair import as_notebook, reference, repair

LABS = ["--labs", str(SOURCE.parent)]


def no_exporter(monkeypatch, place):
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    return "nbconvert is missing: install it with pip install 'rooflab[labs]'"


def no_template(monkeypatch, place):
    def missing(*_):
        raise ValueError("No template sub-directory with name 'lab' found in the following paths:\n\t/usr/share")

    monkeypatch.setattr("nbconvert.HTMLExporter.get_template_names", missing)
    return "ValueError: No template sub-directory with name 'lab' found"


def full_disk(monkeypatch, place):
    (place / "out").mkdir()
    write = Path.write_text

    def fills(path, text, **options):
        if "html" not in path.name:
            return write(path, text, **options)
        write(path, text[:100], **options)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", fills)
    return "No space left on device"


@pytest.mark.slow(fails=[no_template])
@pytest.mark.parametrize("fails", [no_exporter, no_template, full_disk])
@pytest.mark.parametrize("action", ["run", pytest.param("grade", marks=pytest.mark.slow)])
@pytest.mark.slow(id=["run-no_exporter"])
def test_the_grade_stays(tmp_path, capsys, monkeypatch, action, fails):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    said = fails(monkeypatch, tmp_path)
    notebook = [str(tmp_path / "lab9_demo.ipynb")] if action == "grade" else []
    places = ["--output", str(tmp_path / "out"), "--json", str(tmp_path / "g")]
    assert main(["lab", action, "lab9", *notebook, *LABS, *places]) == 3
    captured = capsys.readouterr()
    assert " of 12 points" in captured.out and "Report:" not in captured.out
    assert captured.err.startswith("The grade stands, but there is no report: " + said)
    assert captured.err.count("\n") == 1
    assert json.loads((tmp_path / "g").read_text(encoding="utf-8"))["status"] == "done"
    assert not list(tmp_path.glob("out/*.html*")), "half a page is left"


def test_a_run_is_graded_before_its_kernel_can_die(tmp_path, capsys, monkeypatch):
    def dies(*_):
        assert json.loads((tmp_path / "g").read_text(encoding="utf-8"))["full_marks"]
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(execute, "execute", dies)
    assert main(["lab", "run", "lab9", *LABS, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 3
    captured = capsys.readouterr()
    assert "12 of 12 points" in captured.out and "RuntimeError: Kernel died" in captured.err


@pytest.mark.slow
@pytest.mark.parametrize("action", ["run", "grade"])
def test_a_file_of_results_that_cannot_be_written(tmp_path, capsys, action):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    notebook = [str(tmp_path / "lab9_demo.ipynb")] if action == "grade" else []
    assert main(["lab", action, "lab9", *notebook, *LABS, "--output", str(tmp_path), "--json", "/dev/full"]) == 3
    captured = capsys.readouterr()
    assert " of 12 points" in captured.out and "Report:" in captured.out
    assert captured.err == "The grade stands, but full was not written: No space left on device.\n"


def student(tmp_path, **answers):
    assert main(["lab", "build", *LABS, "--output", str(tmp_path)]) == 0
    path = tmp_path / "lab9_demo.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if code := answers.get(cell["metadata"]["nbgrader"]["grade_id"]):
            cell["source"] = code
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def test_a_report_never_shows_the_code_of_a_hidden_test(tmp_path, capsys):
    path = student(tmp_path, q2_1="corner = 51.5", b2_2="def refuse(x):\n    return x")
    places = ["--output", str(tmp_path), "--json", str(tmp_path / "g")]
    assert main([*GRADE, "lab9", str(path), *LABS, *places]) == 0
    said = capsys.readouterr().out
    assert "hidden: wrong corner" in said and "hidden: -1 was taken" in said
    for text in (
        said,
        (tmp_path / "lab9_demo.html").read_text(encoding="utf-8"),
        (tmp_path / "g").read_text(encoding="utf-8"),
    ):
        assert "50.39" not in text and "assert " not in text.split("Findings")[0].split("corner = 51.5")[0]


def test_what_the_student_found_is_shown_to_the_instructor(tmp_path):
    path = student(tmp_path, q2_1_why="The corner is <b>where</b> both limits meet.")
    assert main([*GRADE, "lab9", str(path), *LABS, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 0
    assert json.loads((tmp_path / "g").read_text(encoding="utf-8"))["findings"] == {
        "2.1": "The corner is <b>where</b> both limits meet."
    }
    page = (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")
    assert "Findings, as they were written" in page and "The corner is &lt;b&gt;where" in page


def test_text_is_text_on_the_page_and_not_tags(tmp_path):
    path = student(
        tmp_path,
        q2_1_why="# Why\n\nOne.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<iframe src=x></iframe>\n\n"
        '<b style="evil" onclick="evil()"><a href="javascript:evil()">Two</a>, <a href="http://x.org">three</a></b>'
        '<a href="#x">four</a>',
    )
    assert main([*GRADE, "lab9", str(path), *LABS, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")
    assert "<p>It has one cell of each sort.</p>" in page and "<p>One.</p>" in page and "<th>a</th>" in page
    assert not re.search(r"&lt;/?(p|h1|table|thead|tbody|th|tr|td)\b", page) and "<iframe" not in page
    shown = page.split("<p>One.</p>")[1]
    assert ">Two</a>" in shown and 'href="http://x.org"' in shown and "evil" not in shown and 'href="#' not in shown


def test_a_student_lays_nothing_over_the_points(tmp_path):
    """The page carries JupyterLab's style, in which a class such as jp-Dialog covers all else."""
    box = '<div class="jp-Dialog grade" id="jp-main-dock-panel"><h1 class="full k">5 of 5</h1></div>\n\n# End'
    page = tmp_path / "x.html"
    raw = {"cell_type": "markdown", "id": "own", "metadata": {}, "source": box}
    report.write_html(Grade(demo_lab(), "x"), as_notebook(repair(demo_lab(), [raw])), page, trusted=False)
    points, notebook = page.read_text(encoding="utf-8").split("<main>")
    assert '<div><h1 class="k">5 of 5</h1></div>' in notebook and "<h1>End</h1>" in notebook and "¶" not in notebook
    assert '<span class="k">' in notebook.split("5 of 5")[1], "code keeps its colours"
    assert "main { contain: paint;" in points


def test_formulas_are_shown_offline(tmp_path):
    evil = r"$$\text{<img src=x onerror=alert(1)>}$$ and $C_{ij}$"
    path = student(tmp_path, q2_1_why=evil)
    assert main([*GRADE, "lab9", str(path), *LABS, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "lab9_demo.html").read_text(encoding="utf-8")
    assert page.count('display="block"') == 1 and page.count('display="inline"') == 2
    assert "$$C" not in page and "$N K M$" not in page and "$N &lt; M$" not in page
    assert "<img src=x" not in page, "a student's formula is not converted"
    assert not re.search(r"<script\b(?:(?!</script>).)*https://", page, re.DOTALL), "nor any diagram's library"


def test_a_page_can_be_read_with_the_keyboard_and_aloud(tmp_path):
    lab, page = demo_lab(), tmp_path / "x.html"
    notebook = as_notebook(reference(lab))
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = [new_output("display_data", data={"image/png": PNG, "text/plain": "a plot"})]
    report.write_html(Grade(lab, "x"), notebook, page, trusted=False)
    text = page.read_text(encoding="utf-8")
    for kind in ("jp-Cell-inputWrapper", "jp-OutputArea-output"):
        found = re.findall(rf'<div[^>]* class="[^"]*{kind}[^>]*>', text)
        assert found and all('tabindex="0"' in one for one in found)
    pictures = re.findall(r"<img [^>]*>", text)
    assert pictures and all("alt=" in one for one in pictures)


ALTS = {
    "words": ({"image/png": {"alt": "a line"}}, 'alt="a line"'),
    "code": ({"image/png": {"alt": '"><script>x</script>'}}, 'alt="&quot;&gt;&lt;script&gt;x&lt;/script&gt;"'),
    "a number": ({"image/png": {"alt": 3}}, 'alt="No description'),
    "nothing": ({}, 'alt="No description'),
}


@pytest.mark.parametrize("about, shown", ALTS.values(), ids=ALTS)
@pytest.mark.parametrize("trusted", [False, True])
def test_a_picture_keeps_its_text(tmp_path, about, shown, trusted):
    notebook, page = as_notebook(reference(demo_lab())), tmp_path / "x.html"
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = [new_output("display_data", data={"image/png": PNG})]
    code.outputs[0]["metadata"] = about
    report.write_html(Grade(demo_lab(), "x"), notebook, page, trusted=trusted)
    (picture,) = re.findall(r"<img [^>]*>", page.read_text(encoding="utf-8"))
    assert shown in picture and picture.count("alt=") == 1


@pytest.mark.parametrize("about", [None, [], {"image/png": ["alt"]}, {"image/png": {"alt": ["a"]}}])
def test_damaged_metadata_of_a_picture_are_left_out(about):
    (kept,) = report._safe([{"output_type": "display_data", "data": {"image/png": PNG}, "metadata": about}])
    assert kept["metadata"] == {} and kept["data"] == {"image/png": PNG}


def test_what_a_student_printed_is_cut(tmp_path):
    """A page stays small whatever a notebook holds: 100 outputs of a cell, 20,000 characters of each."""
    notebook, page = as_notebook(reference(demo_lab())), tmp_path / "x.html"
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    code.outputs = [
        new_output("stream", name="stdout", text="@" * 20_001),
        new_output("execute_result", data={"text/plain": "~" * 20_001}, execution_count=1),
        *(new_output("display_data", data={"text/plain": f"output-{number};"}) for number in range(3, 102)),
    ]
    report.write_html(Grade(demo_lab(), "x"), notebook, page, trusted=False)
    text = page.read_text(encoding="utf-8")
    assert text.count("@" * 20_000) == 1 and "@" * 20_001 not in text
    assert text.count("~" * 20_000) == 1 and "~" * 20_001 not in text
    assert "output-100;" in text and "output-101;" not in text


def test_a_blank_finding_is_none(tmp_path):
    path = student(tmp_path)
    assert main([*GRADE, "lab9", str(path), *LABS, "--output", str(tmp_path), "--json", str(tmp_path / "g")]) == 0
    assert json.loads((tmp_path / "g").read_text(encoding="utf-8"))["findings"] == {}


def test_a_pending_test_counts_neither_way(monkeypatch):
    lab = demo_lab()
    cells = tuple(
        replace(c, source="from rooflab.grading import measure\nmeasure.pending('no GPU')\nassert corner, 'a corner'")
        if c.key == "q2_1_test"
        else c
        for c in lab.cells
    )
    lab = replace(lab, cells=cells)
    result = grade_one("q2_1", "corner = 1.0", lab)
    assert (result.earned, result.points, result.pending) == (0, 0, 3)
    grade = Grade(lab, "my.ipynb", results=[result], done=True)
    assert "Pending, 0 of 3: no GPU" in table(grade) and "0 of 0 points; 3 more are pending" in table(grade)
    head, *rows = table(grade).splitlines()
    assert "points" in head and len(rows) > len(grade.results) and "Pending" not in rows[0], "a line a question"
    assert (grade.to_dict()["out_of"], grade.to_dict()["pending"]) == (0, 3) and grade.full
    lost = grade_one("q2_1", "corner = 0", lab)
    assert (lost.earned, lost.points, lost.pending) == (0, 3, 0), "what fails is lost, and not pending"


def test_a_grade_for_gradescope(tmp_path):
    path = student(
        tmp_path,
        q2_1="corner = 51.5",
        b2_2="def refuse(x):\n    if x < 0:\n        raise ValueError('negative')\n    return x",
    )
    out = tmp_path / "results.json"
    assert main([*GRADE, "lab9", str(path), *LABS, "--output", str(tmp_path), "--gradescope", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    tests = {test["name"]: test for test in found["tests"]}
    assert found["score"] == 3 and len(tests) == 4
    lost, bonus = tests["Question 2.1"], tests["Question b2.2"]
    assert (lost["score"], lost["max_score"], lost["status"]) == (0, 3, "failed") and "wrong corner" in lost["output"]
    assert (bonus["score"], bonus["max_score"], bonus["status"], bonus["output"]) == (3, 0, "passed", "")


def test_a_grade_for_gradescope_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Grade, "write_gradescope", full)
    command = [*GRADE, "lab9", str(student(tmp_path)), *LABS, "--output", str(tmp_path)]
    assert main([*command, "--gradescope", str(tmp_path / "g")]) == 3
    assert capsys.readouterr().err == "The grade stands, but g was not written: No space left on device.\n"


@pytest.mark.parametrize("changed", [False, True])
def test_a_grade_names_what_it_rests_on_and_is_none_if_that_changed(tmp_path, capsys, monkeypatch, changed):
    source = tmp_path / "labs" / "lab9"
    shutil.copytree(SOURCE, source)
    place = tmp_path / "g"

    def graded(self, submission):
        if changed:
            with (source / "00_demo.py").open("a", encoding="utf-8") as file:
                file.write("# changed\n")
        return iter([QuestionResult(question) for question in self.lab.questions])

    monkeypatch.setattr(Judge, "grade", graded)
    path = student(tmp_path)
    code = main(
        [*GRADE, "lab9", str(path), "--labs", str(source.parent), "--json", str(place), "--output", str(tmp_path)]
    )
    if changed:
        assert code == 2 and not place.exists()
        assert capsys.readouterr().err == "rooflab or the source of lab9 changed during the grading: grade again.\n"
    else:
        assert code == 0
        assert json.loads(place.read_text(encoding="utf-8"))["graded_with"] == fingerprint.taken(SOURCE)


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PASTED = {  # the text, the pictures that were pasted, and whether the page shows one
    "a picture": ("![a](attachment:a.png)", {"a.png": {"image/png": PNG}}, True),
    "a name with a blank": ("![a](attachment:my%20plot.png)", {"my plot.png": {"image/png": PNG}}, True),
    "one that is not there": ("![a](attachment:b.png) and ![](attachment:)", {"a.png": {"image/png": PNG}}, False),
    "a drawing that may run": ("![a](attachment:a.svg)", {"a.svg": {"image/svg+xml": "PHN2Zz4="}}, False),
    "no attachments at all": ("<img src='attachment:x'>", 3, False),
    "a picture from elsewhere": ("![a](https://example.org/a.png)", {}, False),
    "a page as a picture": ("<img src='data:text/html;base64,PGI+'> [a](data:text/html,b)", {}, False),
}


@pytest.mark.parametrize("case", PASTED)
def test_pictures_that_were_pasted(tmp_path, case):
    text, pasted, is_shown = PASTED[case]
    lab = demo_lab()
    raw = {"cell_type": "markdown", "id": "own", "metadata": {}, "source": "Seen: " + text, "attachments": pasted}
    page = tmp_path / "page.html"
    report.write_html(Grade(lab, "my.ipynb"), as_notebook(repair(lab, [raw])), page, trusted=False)
    shown = page.read_text(encoding="utf-8")
    pictures = re.findall(r"<img[^>]*src=[^>]*>", shown)
    assert "Seen: " in shown and len(pictures) == is_shown
    assert all('src="data:image/png;base64,' in one for one in pictures) and 'href="data:' not in shown


def test_gradescope_is_told_why_there_is_no_grade(tmp_path, capsys):
    notebook, results = tmp_path / "my.ipynb", tmp_path / "new" / "results.json"
    notebook.write_text("{", encoding="utf-8")
    where = ["--output", str(tmp_path / "new"), "--gradescope", str(results)]
    assert main([*GRADE, "lab9", str(notebook), *LABS, *where]) == 2
    whole = json.loads(results.read_text(encoding="utf-8"))
    assert whole == {"score": 0, "output": "my.ipynb is not a notebook: it is not JSON.", "tests": []}


def test_gradescope_is_told_of_repairs_and_of_points_by_hand(tmp_path):
    lab = demo_lab()
    grade = Grade(lab, "my.ipynb", ["Answer q1 is in 2 cells."], [grade_one("q2_1", "corner = 50.39")])
    grade.by_hand = {"2.1": Mark(1.5, "Good"), "1": Mark(None, "Why?")}
    grade.write_gradescope(tmp_path / "results.json")
    whole = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert whole["score"] == 4.5 and whole["output"].startswith("4.5 points (3 of 12 in the tests, 1.5 by hand), ")
    assert whole["output"].endswith("\nrepaired: Answer q1 is in 2 cells.")
    assert whole["tests"][1:] == [
        {"name": "Question 2.1, by hand", "score": 1.5, "output": "Good"},
        {"name": "Question 1, by hand", "score": 0, "output": "Why?"},
    ]
