"""Who handed in the same notebook, and the files of each student for tools that look for similar answers."""

import ast
from dataclasses import replace

import nbformat
from grading.demo_lab import RIGHT, demo_lab

from rooflab.grading.classroom import similarity
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.lab import release

LAB = demo_lab()


def notebook(tmp_path, name, answer=None, more=()):
    from nbformat.v4 import new_code_cell

    whole = release.build(LAB)
    for cell in whole["cells"]:
        if answer and cell["metadata"].get("nbgrader", {}).get("grade_id") == "q1":
            cell["source"] = answer
    whole["cells"] += [new_code_cell(source) for source in more]
    path = tmp_path / f"{name}.ipynb"
    path.write_text(release.dumps(whole), encoding="utf-8")
    return Handed(name, path)


def test_a_file_a_student_without_what_the_lab_handed_out(tmp_path):
    given = next(cell.public for cell in LAB.cells if cell.role == "setup")
    more = ("%time helper = 3", given, "", "def broken(:")
    handed = [
        notebook(tmp_path, "ada", RIGHT, more),
        notebook(tmp_path, "bob", RIGHT),
        notebook(tmp_path, "eve"),
        Handed("dan", None, "There are 2 notebooks."),
        Handed("fay", tmp_path / "none.ipynb"),
    ]
    folder = tmp_path / "similar"
    assert similarity.write(folder, LAB, handed) == (2, [])
    written = {path.stem: path.read_text(encoding="utf-8") for path in (folder / "students").iterdir()}
    assert written["bob"] == f"# 1\n{RIGHT.strip()}\n" and set(written) == {"ada", "bob"}
    ada = written["ada"].removeprefix(written["bob"])
    assert "helper = " in ada and "%time" not in ada and "def broken(:" in ada and given.strip() not in ada
    (public,) = (folder / "handed_out").iterdir()
    text = public.read_text(encoding="utf-8")
    assert ast.parse(text) and "def gemm" in text and given.strip() in text and "out[i, j] +=" not in text
    assert all(cell.source not in text for cell in LAB.cells if cell.role == "test" and cell.source != cell.public)


def test_who_left_leaves_no_file(tmp_path):
    ada, bob = (notebook(tmp_path, name, RIGHT) for name in ("ada", "bob"))
    assert [similarity.write(tmp_path / "similar", LAB, handed)[0] for handed in ([ada, bob], [bob])] == [2, 1]
    assert [path.name for path in (tmp_path / "similar" / "students").iterdir()] == ["bob.py"]


def test_the_same_notebook_is_named_whatever_its_cells_show(tmp_path):
    handed = [notebook(tmp_path, name, RIGHT) for name in ("ada", "bob")]
    handed += [notebook(tmp_path, "cem", RIGHT + "# mine"), *(notebook(tmp_path, name) for name in ("dan", "eve"))]
    handed += [
        replace(handed[0], student="gil", note="Odd."),
        Handed("fay", tmp_path / "none.ipynb"),
        Handed("hu", None),
    ]
    shown = nbformat.read(handed[1].path, 4)
    for number, cell in enumerate(one for one in shown.cells if one.cell_type == "code"):
        cell.execution_count, cell.outputs = number, [nbformat.v4.new_output("stream", text="seen")]
    nbformat.write(shown, handed[1].path)
    noted, said = similarity.noted(LAB, handed)
    assert said == ["The same notebook came from ada, bob and gil, with 1 answer."]
    assert {one.student: one.note for one in noted if one.note} == {
        "ada": "The same notebook came from bob.",
        "bob": "The same notebook came from ada and gil.",
        "gil": "Odd. The same notebook came from bob.",
    }
    assert [replace(one, note="") for one in noted] == [replace(one, note="") for one in handed]
    group = [handed[0], replace(handed[0], student="gil")]
    assert similarity.noted(LAB, group) == (group, []), "they handed it in together"
