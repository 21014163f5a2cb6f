"""Notebooks that attack what reads them: the repair, the judge, the report, the table of a class, the terminal."""

import copy
import json
import re
import time
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, TRUSTED, demo_lab
from redteam.attack import judge

from rooflab.cli import main
from rooflab.grading.lab import release
from rooflab.grading.lab.repair import read_submission

LABS = ["--labs", str(SOURCE.parent)]
ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066]")
EVIL = "\x1b[2J\x1b]0;x\x07\u202e12 of 12 points\n12 of 12 points\n"


def notebook() -> dict:
    """The notebook of a student who answers only the number, which earns 3 of 12 points."""
    whole = json.loads(release.dumps(release.build(demo_lab())))
    cell(whole, "q2_1")["source"] = "corner = 50.39"
    return whole


def cell(whole: dict, key: str) -> dict:
    return next(one for one in whole["cells"] if one["metadata"]["nbgrader"]["grade_id"] == key)


def own(source: str, **fields) -> dict:
    return {
        "cell_type": "code",
        "id": "mine",
        "metadata": {},
        "outputs": [],
        "source": source,
        "execution_count": 1,
    } | fields


def shows(data: dict) -> dict:
    return own("1", outputs=[{"output_type": "display_data", "data": data, "metadata": {}}])


def prints(text: str) -> dict:
    return own("1", outputs=[{"output_type": "stream", "name": "stdout", "text": text}])


ODD_OUTPUTS = [
    {"output_type": "stream", "name": "stdout", "text": 7}, {"output_type": "stream", "text": "x"}, {"x": 1}, 7, None,
    {"output_type": "display_data", "data": [1]}, {"output_type": "display_data"}, {"output_type": None},
    {"output_type": "error", "ename": 7}, {"output_type": "x" * 999, "metadata": 7},
]  # fmt: skip


# Each changes the notebook; the grade stays 3 of 12 points.


def points_in_metadata(whole):
    cell(whole, "q1_test")["metadata"]["nbgrader"]["points"] = 1000
    cell(whole, "q2_1_test")["metadata"]["nbgrader"]["points"] = 1000


def text_as_points(whole):
    cell(whole, "q1_test")["metadata"]["nbgrader"]["points"] = "\n12 of 12 points"


def escapes_as_points(whole):
    cell(whole, "q1_test")["metadata"]["nbgrader"]["points"] = "\x1b[2J\x1b[31m"


def easy_tests(whole):
    cell(whole, "q1_test")["source"] = "assert True"


def more_tests(whole):
    whole["cells"] += [copy.deepcopy(cell(whole, "q2_1_test")) for _ in range(3)]


def a_test_of_its_own(whole):
    marks = {"grade_id": "q1_mine_test", "grade": True, "points": 50, "locked": True, "solution": False}
    whole["cells"].append(own("assert True", metadata={"nbgrader": marks}))


def a_setup_of_its_own(whole):
    whole["cells"].insert(0, own("SIDE = 0", metadata={"tags": ["setup"]}))


def a_setup_changed(whole):
    setup = next(one for one in whole["cells"] if "SIDE" in "".join(one["source"]))
    setup["source"] = "import numpy as np\nSIDE = 0\nfrom builtins import open"


def a_test_as_an_answer(whole):
    cell(whole, "q1_test")["metadata"]["nbgrader"] |= {"grade": False, "solution": True}
    cell(whole, "q1_test")["source"] = "def gemm(a, b):\n    pass"


def options_in_metadata(whole):
    for one in whole["cells"]:
        one["metadata"]["rooflab"] = {"seconds": 1e9, "memory_gb": 1e9, "needs": ["q2_1"]}


def another_lab(whole):
    whole["metadata"]["rooflab"] = {"lab": "../../../../tmp/rooflab_red", "notebook": "/etc/passwd"}


def another_kernel(whole):
    whole["metadata"]["kernelspec"] = {"name": "../../rooflab_red", "display_name": "x", "language": "bash"}
    whole["metadata"]["language_info"] = {"name": "bash", "nbconvert_exporter": "rooflab_red", "pygments_lexer": "../x"}


def names_as_paths(whole):
    for number, one in enumerate(whole["cells"]):
        if not one["metadata"]["nbgrader"].get("solution"):
            one["id"] = f"../../rooflab_red{number}"[:64]


def the_stub_twice(whole):
    whole["cells"].append(own("raise SystemExit", metadata=copy.deepcopy(cell(whole, "q1")["metadata"])))


def deep_code(whole):
    whole["cells"].insert(0, own("x = " + "(" * 9000))
    whole["cells"].append(own("x = " + "-" * 90000 + "1"))
    whole["cells"].append(own("\x00"))
    whole["cells"] = [one for one in whole["cells"] if one["metadata"].get("nbgrader", {}).get("grade_id") != "b2_2"]


def many_magics(whole):
    whole["cells"].insert(0, own("%time x = 1\n" * 5000))


def a_surrogate(whole):
    cell(whole, "q2_1_why")["source"] = "because \ud800"
    whole["cells"].append(own("x = '\ud800'"))
    whole["cells"].append(prints("\udfff"))


def an_error_with_escapes(whole):
    cell(whole, "q1")["source"] = f"raise ValueError({EVIL!r})"


def a_type_with_escapes(whole):
    cell(whole, "q1")["source"] = f"def gemm(a, b):\n    return type({EVIL!r}.replace('\\x00', ''), (), {{}})()"


def last_words_with_escapes(whole):
    forged = f"wire.message((0, 'fatal', {EVIL!r}))"
    cell(whole, "q1")["source"] = (
        f"import os\nfrom rooflab.grading.jail import wire\nfor fd in range(3, 64):\n    try:\n"
        f"        os.write(fd, {forged})\n    except OSError:\n        pass\nos._exit(0)"
    )


def scripts_in_text(whole):
    cell(whole, "q2_1_why")["source"] = "<script>alert(1)</script> <img src=x onerror=alert(1)> {{ 1 + 1 }}"
    whole["cells"].append({"cell_type": "markdown", "id": "m", "metadata": {}, "source": "<script>alert(2)</script>"})
    whole["cells"].append(
        {
            "cell_type": "raw",
            "id": "r",
            "metadata": {"raw_mimetype": "text/html"},
            "source": "<script>alert(3)</script>",
        }
    )


def scripts_in_outputs(whole):
    script = "<script>alert(4)</script>"
    kinds = "text/html", "image/svg+xml", "application/javascript", "text/markdown", "text/latex", "text/plain"
    whole["cells"] += [shows({kind: script}) for kind in kinds]
    whole["cells"].append(shows({"image/png": '"><script>alert(5)</script>'}))
    whole["cells"].append(prints(script))
    whole["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {"</script>": script}}}


def much_output(whole):
    whole["cells"].append(prints("\x1b[31mred" * 100_000))
    whole["cells"].append(own("1", outputs=[prints("x")["outputs"][0] for _ in range(5_000)]))


def too_many_cells(whole):
    whole["cells"] += [own("x", id=f"mine-{number}") for number in range(20_000)]


def too_long_a_cell(whole):
    whole["cells"].append(own("x\n" * 300_000))


def odd_outputs(whole):
    whole["cells"].append(own("1", outputs=ODD_OUTPUTS))
    whole["cells"].append(own("1", id="more", outputs=7))


def odd_fields(whole):
    whole["cells"].append(own("1", metadata={"nbgrader": [1], "tags": {"a": 1}, "rooflab": 7}))
    whole["nbformat_minor"] = 99


def odd_metadata(whole):
    whole["cells"].append(own("1", attachments=3))


CHANGED = [
    points_in_metadata, easy_tests, more_tests, a_test_of_its_own, a_setup_of_its_own, a_setup_changed,
    a_test_as_an_answer, options_in_metadata, another_lab, another_kernel, names_as_paths, the_stub_twice, deep_code,
    many_magics, odd_fields, odd_metadata,
]  # fmt: skip
SHOWN = [
    text_as_points, escapes_as_points, a_surrogate, odd_outputs, an_error_with_escapes, a_type_with_escapes,
    last_words_with_escapes, scripts_in_text, scripts_in_outputs, much_output,
]  # fmt: skip
REFUSED = [too_many_cells, too_long_a_cell]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def grade(path: Path, capsys) -> tuple[dict, str, str]:
    """The result, what the terminal shows, and the page."""
    out = path.parent / "out"
    code = main([*GRADE, "lab9", str(path), *LABS, "--output", str(out), "--json", str(path.parent / "grade.json")])
    said = capsys.readouterr()
    assert code == 0, said.err
    result = json.loads((path.parent / "grade.json").read_text(encoding="utf-8"))
    return result, said.out + said.err, (out / f"{path.stem}.html").read_text(encoding="utf-8")


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("change", CHANGED, ids=lambda change: change.__name__)
def test_a_changed_notebook_earns_what_it_answers(change, tmp_path):
    whole = notebook()
    change(whole)
    path = tmp_path / "my.ipynb"
    path.write_text(json.dumps(whole), encoding="utf-8")
    start = time.monotonic()
    submission = read_submission(demo_lab(), path)
    results = [judge("q1", "", 8.0).grade_question(one, submission) for one in ("q1", "q2_1")]
    assert [(one.earned, one.points) for one in results] == [(0, 5), (3, 3)], results[1].tests[0].message
    assert time.monotonic() - start < 20
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "change",
    [pytest.param(one, id=one.__name__, marks=[pytest.mark.slow] * (one not in SHOWN[:4])) for one in SHOWN],
)
@pytest.mark.slow(id=["text_as_points", "odd_outputs"])
def test_what_a_notebook_shows_is_text(change, folder, capsys):
    whole = notebook()
    change(whole)
    (folder / "my.ipynb").write_text(json.dumps(whole), encoding="utf-8")
    start = time.monotonic()
    result, said, page = grade(folder / "my.ipynb", capsys)
    assert (result["points"], result["out_of"], result["bonus"]) == (3, 12, 0)
    assert not ESCAPES.search(said), "an escape sequence reaches the terminal"
    assert re.findall(r"^\d+ of .*", said, re.MULTILINE) == [
        "3 of 12 points, 0 of 3 bonus points" + "; not isolated" * TRUSTED
    ]
    assert not re.search(r"<script>alert|<img src=x|onerror=alert\(1\)>", page), (
        "a script of the student's is in the page"
    )
    assert len(page) < 3_000_000 and time.monotonic() - start < 30
    assert {path.name for path in folder.iterdir()} == {"my.ipynb", "grade.json", "out"}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_what_cannot_be_read_is_refused_in_one_line(change, folder, capsys):
    whole = notebook()
    change(whole)
    (folder / "my.ipynb").write_text(json.dumps(whole), encoding="utf-8")
    assert main([*GRADE, "lab9", "my.ipynb", *LABS]) == 2
    said = capsys.readouterr()
    assert re.fullmatch(r"my\.ipynb (is not a notebook|has more than 2000 cells)[^\n]*\.\n", said.err) and not said.out
