"""Student notebooks hold all that is public and nothing else; the same source gives the same bytes."""

import json

import pytest
from grading.demo_lab import SOURCE, demo_lab

import rooflab
from rooflab.grading.lab import model as lab_source
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError, from_source
from rooflab.grading.lab.students import from_notebook

TEXT = (SOURCE / "00_demo.py").read_text(encoding="utf-8")


def lab_from(text, tmp_path):
    path = tmp_path / "lab9" / "00_demo.py"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return from_source(path.parent)


@pytest.fixture(scope="module")
def notebook():
    return release.build(demo_lab())


def test_the_build_is_reproducible(notebook):
    assert release.dumps(release.build(demo_lab())) == release.dumps(notebook)
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells) == len(demo_lab().cells)


def test_stubs_and_public_tests_stay_and_secrets_go(notebook):
    text = release.dumps(notebook).replace("source_hidden", "")
    for public in (
        "write your code here",
        "corner = None",
        "# your code here",
        "the identity changes nothing",
        "Your answer",
    ):
        assert public in text
    for secret in ("50.39", "hidden", "out[row", "divides the peak", "BEGIN", "np.trace", "20261"):
        assert secret not in text
    assert all(not cell.get("outputs") for cell in notebook.cells)


def test_metadata_are_nbgraders(notebook):
    marks = {cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader for cell in notebook.cells}
    assert marks["q1_test"] == {
        **{"grade": True, "locked": True, "solution": False, "task": False},
        **{"grade_id": "q1_test", "points": 5, "schema_version": 3},
    }
    assert marks["q1"]["solution"] and not marks["q1"]["locked"]


def test_the_public_half_reads_back(notebook, tmp_path):
    path = tmp_path / "lab9_demo.ipynb"
    path.write_text(release.dumps(notebook), encoding="utf-8")
    lab, full = from_notebook(path), demo_lab()
    assert lab.questions == full.questions == ["q1", "q2_1", "q2_2", "b2_2"]
    assert [(c.key, c.role, c.points, c.question) for c in lab.cells] == [
        (c.key, c.role, c.points, c.question) for c in full.cells
    ]
    assert lab.title == full.title and lab.student_names("q2_2") == full.student_names("q2_2") == {
        "gemm",
        "trace_of_product",
    }
    assert lab.needs("q2_2") == {"q1", "q2_2"} and lab.limits("q1").seconds == 8


def test_a_lab_is_its_parts_in_the_order_of_their_names(tmp_path):
    folder = tmp_path / "lab9"
    folder.mkdir()
    cut = TEXT.index("# %% [markdown]\n# ## Question 2.2")
    (folder / "20_second.py").write_text(TEXT[cut:], encoding="utf-8")
    (folder / "00_first.py").write_text(TEXT[:cut], encoding="utf-8")
    (folder / "notes.py").write_text("no part of the lab", encoding="utf-8")
    assert from_source(folder) == demo_lab()


def test_a_question_may_end_in_a_letter():
    found = [lab_source.GRADE_ID.fullmatch(key) for key in ("q1_1_3a_row_test", "q1_1_3a", "q1_3_a_test", "b4_2_why")]
    assert [one["question"] for one in found] == ["q1_1_3a", "q1_1_3a", "q1_3", "b4_2"]
    assert [lab_source.label(name) for name in ("q1_1_3a", "b4_2", "q1_3")] == ["1.1.3a", "b4.2", "1.3"]
    names = ("q1_1_3a_row_test", "q1_3_test", "q3_1_mac", "b4_2")
    assert list(map(lab_source.named, names)) == ["1.1.3a, row", "1.3", "3.1, mac", "b4.2"]


def test_points_by_hand_stand_in_headings(tmp_path):
    text = TEXT.replace(
        "## Question 1:",
        "## 7 (10 points, by hand)\n# It gives (3 points, by hand).\n# ## 8 (1 point, graded by hand):",
    )
    assert lab_from(text, tmp_path).by_hand == 11


def test_points_stand_in_the_test_cells_alone(tmp_path):
    text = TEXT.replace(
        "## Question 1:",
        "## {points q1}, of which {points q1_test}; {points b2_2}; {points q2_1}; {points q2_1_test q1}:",
    )
    text = text.replace('"points": 3}\nassert type(corner)', '"points": 1}\nassert type(corner)')
    lab = lab_from(text, tmp_path)
    assert (lab.points, lab.bonus) == (10, 3)
    said = "## 5 points, of which 5 points; 3 bonus points; 1 point; 6 points:"
    assert any(said in cell.source and said in cell.public for cell in lab.cells)
    assert release.build(lab).metadata.rooflab == {
        "lab": "lab9",
        "points": 10,
        "bonus": 3,
        "version": rooflab.__version__,
    }


@pytest.mark.parametrize(
    "secret",
    [
        "    return float(np.trace(gemm(a, b)))",
        "return   float( np.trace( gemm(a,b) ) )  # spaced",
        "x = [\n    return float(np.trace(gemm(a, b)))\n]",
        "the corner lies at 50.39",
        "### END SOLUTION",
        "a, b = np.random.default_rng(20261).standard_normal((2, 5, 5))",
        "#assert abs(corner - 50.39) < 0.01",
        "Because the ridge divides the peak by the bandwidth.",
    ],
)
def test_the_leak_check_finds_what_a_broken_build_leaves(notebook, secret):
    for kind in ("code", "markdown"):
        broken = json.loads(release.dumps(notebook))
        cell = next(cell for cell in broken["cells"] if cell["cell_type"] == kind)
        cell["source"] = "".join(cell["source"]) + "\n" + secret
        for other in broken["cells"]:
            other["source"] = "".join(other["source"])
        with pytest.raises(LabError, match="left in the notebook"):
            release.check_leaks(demo_lab(), broken)


def test_the_leak_check_finds_outputs_and_metadata(notebook):
    for place, value in (
        ("outputs", [{"output_type": "stream"}]),
        ("execution_count", 3),
        ("metadata", {"a": "50.39"}),
    ):
        broken = json.loads(release.dumps(notebook))
        for cell in broken["cells"]:
            cell["source"] = "".join(cell["source"])
        next(cell for cell in broken["cells"] if cell["cell_type"] == "code")[place] = value
        with pytest.raises(LabError, match="left in the notebook"):
            release.check_leaks(demo_lab(), broken)


@pytest.mark.parametrize("mutant", ["keeps solutions", "keeps hidden tests", "keeps one line", "stops too early"])
def test_a_stripper_that_keeps_something_is_caught(monkeypatch, mutant):
    regions = lab_source._regions

    def spoiled(source, question, where):
        shown, hidden = regions(source, question, where)
        kept = {
            "keeps solutions": hidden if "SOLUTION" in source else [],
            "keeps hidden tests": hidden if "HIDDEN" in source else [],
            "keeps one line": hidden[1:2],
            "stops too early": hidden[-1:],
        }[mutant]
        return shown + kept, hidden

    monkeypatch.setattr(lab_source, "_regions", spoiled)
    with pytest.raises(LabError, match="left in the notebook"):
        release.build(demo_lab())


@pytest.mark.parametrize("name", ["5_more.py", "01-more.py", "100_more.py"])
def test_a_part_with_another_number_is_not_left_out(tmp_path, name):
    lab_from(TEXT, tmp_path)
    (tmp_path / "lab9" / name).touch()
    with pytest.raises(
        LabError, match=rf"^lab9/{name} is not a part of a lab: its name has to begin with two digits and _\.$"
    ):
        from_source(tmp_path / "lab9")


def test_a_part_may_begin_with_a_byte_order_mark(tmp_path):
    assert lab_from("\ufeff" + TEXT, tmp_path) == demo_lab()
    (tmp_path / "lab9" / "00_demo.py").write_bytes(TEXT.encode().replace(b"Say why", b"Say \xff"))
    with pytest.raises(LabError, match=r"lab9/00_demo\.py is not a part in percent format: 'utf-8' codec"):
        from_source(tmp_path / "lab9")


@pytest.mark.parametrize(
    "before, after, words",
    [
        ("    notebook: lab9_demo", "    lab: lab9", "has to name its notebook"),
        ("# It has one cell", "# {points q1 q7} One cell", "names q7, which is no test"),
        ('"points": 5', '"points": 0', "has no points"),
        (
            '"points": 5',
            '"points": 1000000',
            "q1_test has points, seconds or memory_gb that are not below 1,000,000",
        ),
        ('"seconds": 8', '"seconds": 2e6', "not below"),
        ("    ### END SOLUTION\n", "", "missing|inside another"),
        ("    ### BEGIN SOLUTION\n", "", "has no matching BEGIN line"),
        ("### END HIDDEN TESTS", "", "missing"),
        ('"q2_1_test"', '"q1_test"', "used twice"),
        ('"q2_1_test"', '"question 2"', "not like q1_3"),
        ('"needs": ["q1"]', '"needs": ["q7"]', "needs q7"),
        (' rooflab={"needs": ["q1"]}', "", ""),
        ("assert refuse(2) == 2", "assert refused(2) == 2", "uses refused"),
        (', "2 is not negative"', "", r"b2_2_test: `assert refuse\(2\) == 2` does not say"),
        ("corner = None  # your number\n", "", "uses corner"),
        ('"grade_id": "q1", "solution": true', '"grade_id": "q1", "solution": true, "grade": true', "not both"),
        ("# jupyter:\n#   rooflab:\n#     notebook: lab9_demo", "# rooflab: {notebook: lab9_demo}", "#   rooflab:"),
        ("notebook: lab9_demo", "notebook: ../lab9_demo", r"name its notebook, not \.\./lab9_demo"),
        ("notebook: lab9_demo", "notebook: [lab9_demo", "not a part in percent format"),
        ('"points": 5', '"points": 2.5', "cell 5: points are a whole number, not 2.5"),
        ('"points": 5', '"points": null', "points are a whole number"),
        ('"q2_1_why", "solution": true', '"q2_1_why", "solution": true, "points": 4', "points belong to test cells"),
        ('"grade_id": "q2_1_test", ', "", "needs a grade_id"),
        ('"grade": true, "points": 5', '"graded": true, "points": 5', "nbgrader has no 'graded'; it knows grade_id, "),
        ('"grade": true, "points": 5', '"grade": true "points": 5', "its metadata are not JSON: nbgrader="),
        ('{"seconds": 8, "memory_gb": 2}', '{"second": 8}', "rooflab has no 'second'"),
        ('{"seconds": 8, "memory_gb": 2}', '["seconds"]', "rooflab has to be in braces"),
        ('"seconds": 8', '"seconds": "a minute"', "seconds has to be a positive number"),
        ('"needs": ["q1"]', '"needs": "q1"', "needs has to be a list"),
        (
            '"q2_1", "solution": true}',
            '"q2_1", "solution": true} rooflab={"seconds": 8}',
            "seconds belongs to test cells",
        ),
        ("### BEGIN HIDDEN TESTS", "### BEGIN HIDDEN TEST", "'### BEGIN HIDDEN TEST' is not a marker"),
        ("    ### BEGIN SOLUTION", "    # begin solution:", "'# begin solution:' is not a marker"),
        ('nbgrader={"grade_id": "q2_1", "solution": true}', "", "stands in a cell that is not an answer"),
        ("### BEGIN SOLUTION\ncorner", "### BEGIN HIDDEN TESTS\ncorner", "neither a test nor a set-up cell"),
        ("SIDE = 4", "SIDE = = 4", "is not Python: invalid syntax: SIDE = = 4"),
    ],
)
def test_a_faulty_source_is_refused(tmp_path, before, after, words):
    assert before in TEXT
    text = TEXT.replace(before, after, 1) if before != "corner = None  # your number\n" else TEXT.replace(before, after)
    if not words:
        release.build(lab_from(text, tmp_path))
        return
    with pytest.raises(LabError, match=words):
        release.build(lab_from(text, tmp_path))
