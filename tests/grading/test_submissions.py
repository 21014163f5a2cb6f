"""Which notebook in a folder or a zip belongs to which student."""

import json
import os
import zipfile

import pytest
from grading.demo_lab import demo_lab

from rooflab.grading.classroom.archives import unpacked
from rooflab.grading.classroom.submissions import collect, safe_names
from rooflab.grading.lab import model as labs
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError

LAB = demo_lab()
OURS = release.dumps(release.build(LAB))
OTHER = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def handed(folder, **texts):
    """What is collected from these files; `__` in a name separates folders."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return {
        one.student: one.path.relative_to(folder).as_posix() if one.path else one.problem
        for one in collect(folder, LAB)
    }


def test_files_beside_each_other(tmp_path):
    assert handed(tmp_path, bob=OURS, ada=OURS) == {"ada": "ada.ipynb", "bob": "bob.ipynb"}


def test_a_folder_a_student(tmp_path):
    found = handed(tmp_path, ada__lab=OURS, bob__deep__er__lab=OURS, bob__lab2=OTHER)
    assert found == {"ada": "ada/lab.ipynb", "bob": "bob/deep/er/lab.ipynb"}


@pytest.mark.parametrize("names", [("all__ada", "all__bob"), ("a__b__ada__x", "a__b__bob__x"), ("ada", "bob__lab")])
def test_folders_around_all_of_them_are_no_students(tmp_path, names):
    assert list(handed(tmp_path, **dict.fromkeys(names, OURS))) == ["ada", "bob"]


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
def test_a_student_whose_folder_begins_with_a_dot(tmp_path, packed):
    names = (".bob/lab.ipynb", ".kim/a/lab.ipynb", ".notes/x.txt", ".git/lab.ipynb", "ada/lab.ipynb", "ada/.x/l.ipynb")
    place = tmp_path / "class"
    place.mkdir()
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in names:
            archive.writestr(name, OURS)
        if not packed:
            archive.extractall(place)
    found = collect(place, LAB, unpacked(tmp_path / "class.zip", place) if packed else {})
    assert [(one.student, one.path.name) for one in found] == [
        (safe_names([".bob"])[0], "lab.ipynb"), (safe_names([".kim"])[0], "lab.ipynb"), ("ada", "lab.ipynb"),
    ]  # fmt: skip


def test_one_student_alone(tmp_path):
    assert list(handed(tmp_path, ada__lab=OURS)) == ["ada"]


def test_two_notebooks_of_the_lab(tmp_path):
    whole = json.loads(OURS)
    half = json.dumps(whole | {"cells": whole["cells"][:2]})
    found = handed(tmp_path, ada__lab=OURS, ada__start=half, bob__lab=OURS, bob__copy=OURS)
    assert found == {"ada": "ada/lab.ipynb", "bob": "bob/lab.ipynb"}


SOLVED = OURS.replace("corner = None  # your number", "corner = 50.39")
MORE = SOLVED.replace("*Your answer here.*", "So it is.")


@pytest.mark.parametrize("copied", ["lab-Copy1", "a", "lab (1)"])
def test_the_solved_one_of_two(tmp_path, copied):
    found = handed(tmp_path, **{"ada__lab": OURS, f"ada__{copied}": SOLVED, "bob__lab": SOLVED, f"bob__{copied}": OURS})
    assert found == {"ada": f"ada/{copied}.ipynb", "bob": "bob/lab.ipynb"}
    assert [one.note for one in collect(tmp_path, LAB)] == ["", ""]


def test_of_notebooks_with_as_many_answers_the_whole_one_counts_then_the_shortest_name(tmp_path):
    cut = json.loads(SOLVED)
    cut["cells"] = [cell for cell in cut["cells"] if "corner ==" not in "".join(cell["source"])][:-1]
    found = handed(
        tmp_path,
        ada__a=json.dumps(cut),
        ada__longer=SOLVED,
        bob__aa=SOLVED,
        bob__z=SOLVED + " ",
        eve__b=SOLVED,
        eve__a=SOLVED,
    )
    assert found == {"ada": "ada/longer.ipynb", "bob": "bob/z.ipynb", "eve": "eve/a.ipynb"}


def test_it_is_said_which_of_two_solved_ones_was_taken(tmp_path):
    other = SOLVED.replace("50.39", "7.0")
    handed(tmp_path, ada__lab=SOLVED, ada__a=MORE, bob__lab=SOLVED, bob__lab2=other, eve__lab=SOLVED, eve__b=SOLVED)
    assert [(one.path.name, one.note) for one in collect(tmp_path, LAB)] == [
        ("a.ipynb", "Of 2 notebooks a.ipynb was graded, because it has the most answers: 2; lab.ipynb has 1."),
        (
            "lab.ipynb",
            "Of 2 notebooks lab.ipynb was graded, because it has as many answers as others (1; lab2.ipynb has 1) and "
            "comes first: ask which one counts.",
        ),
        ("b.ipynb", ""),
    ]


def test_it_is_said_that_two_forms_of_a_name_are_taken_for_one_student(tmp_path):
    one, two = "\u00e9clair", "e\u0301clair"
    (tmp_path / two).mkdir()
    if (tmp_path / one).exists():
        pytest.skip("this file system has one form of a name")
    assert handed(tmp_path, **{f"{one}__a": SOLVED, f"{two}__a": OURS, "bob__a": OURS}) == {
        "bob": "bob/a.ipynb",
        one: f"{one}/a.ipynb",
    }
    bob, eclair = collect(tmp_path, LAB)
    assert "two forms of Unicode" in eclair.note and not bob.note


def test_what_cannot_be_read_is_said(tmp_path):
    found = handed(tmp_path, ada="{", bob=OURS, eve__lab=OURS, eve__notes="{")
    assert found == {"ada": "ada.ipynb is not a notebook: it is not JSON.", "bob": "bob.ipynb", "eve": "eve/lab.ipynb"}


def with_cells(**fields):
    """The student notebook with these fields in all of its cells."""
    whole = json.loads(OURS)
    return json.dumps(whole | {"cells": [cell | fields for cell in whole["cells"]]})


NO_FILE = "ask for the notebook itself."
IN_FOLDERS = {  # what is in eve's folder, and what her row says
    "upper case": ({"LAB9.IPYNB": OURS}, "LAB9.IPYNB"),
    "as text": ({"lab9.ipynb.txt": OURS}, "lab9.ipynb.txt"),
    "without marks": ({"lab.ipynb": with_cells(metadata={}, id="x")}, "lab.ipynb"),
    "metadata that are nothing": ({"lab.ipynb": with_cells(metadata=None)}, "lab.ipynb"),
    "metadata that are a list": ({"lab.ipynb": json.dumps(json.loads(OURS) | {"metadata": [1]})}, "lab.ipynb"),
    "damaged outputs": ({"lab.ipynb": with_cells(outputs=[None, {}, 5], attachments=[1])}, "lab.ipynb"),
    "a version that is no number": ({"lab.ipynb": json.dumps(json.loads(OURS) | {"nbformat": True})}, "lab.ipynb"),
    "a version without end": (
        {"lab.ipynb": json.dumps(json.loads(OURS) | {"nbformat_minor": float("inf")})},
        "lab.ipynb",
    ),
    "UTF-16": ({"lab.ipynb": OURS.encode("utf-16")}, "lab.ipynb"),
    "a number without end": (
        {"lab.ipynb": json.dumps(json.loads(OURS) | {"nbformat": 4}).replace(": 4,", ": " + "9" * 5000 + ",")},
        "lab.ipynb is not a notebook: it is not JSON.",
    ),
    "html alone": ({"lab9.html": "<html>"}, "There is no notebook, only lab9.html: ask for the .ipynb file."),
    "seven others": (
        {f"{number}.png": "" for number in range(7)},
        "There is no notebook, only 0.png, 1.png, 2.png, 3.png, 4.png and 2 more: ask for the .ipynb file.",
    ),
    "no bytes": ({"lab9.ipynb": ""}, "lab9.ipynb is empty."),
    "another lab": (
        {"x.ipynb": with_cells(source="other").replace('"lab": "lab9"', '"lab": "lab2"')},
        f"x.ipynb is a notebook of lab2 and holds nothing of lab9: {NO_FILE}",
    ),
    "another notebook": ({"x.ipynb": OTHER}, f"x.ipynb is another notebook and holds nothing of lab9: {NO_FILE}"),
    "nothing": ({}, f"The folder eve is empty or has hidden files only: {NO_FILE}"),
    "a checkpoint alone": (
        {".ipynb_checkpoints/lab-checkpoint.ipynb": OURS},
        f"The folder eve is empty or has hidden files only: {NO_FILE}",
    ),
    "an archive of another kind": ({"w.rar": "Rar!"}, "There is no notebook, only w.rar: ask for the .ipynb file."),
}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("case", IN_FOLDERS)
def test_nobody_is_missing(tmp_path, case, packed):
    contents, said = IN_FOLDERS[case]
    place = tmp_path / "class"
    place.mkdir()
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr("ada/lab.ipynb", OURS)
        archive.writestr("eve/", "")
        for name, text in contents.items():
            archive.writestr(f"eve/{name}", text)
        if not packed:
            archive.extractall(place)
    absent = unpacked(tmp_path / "class.zip", place) if packed else {}
    found = {one.student: one.problem or one.path.name for one in collect(place, LAB, absent)}
    assert found == {"ada": "lab.ipynb", "eve": said}


def test_each_file_of_a_flat_class_is_a_row(tmp_path):
    for name, text in {
        "ada.ipynb": OURS,
        "bob.html": "",
        "eve.IPYNB.txt": OURS,
        "zoe.zip": "",
        "x.ipynb": OTHER,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [(one.student, bool(one.path)) for one in collect(tmp_path, LAB)] == [
        ("ada", True), ("bob", False), ("eve", True), ("x", False), ("zoe", False),
    ]  # fmt: skip


def test_what_lies_beside_the_students_folders_is_nobodys(tmp_path):
    for name in ("ada/lab.ipynb", "bob/lab.ipynb", "index.html", "grades/eve.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(OURS, encoding="utf-8")
    assert [one.student for one in collect(tmp_path, LAB, left_out=[tmp_path / "grades"])] == ["ada", "bob"]


def test_what_is_nobodys(tmp_path):
    names = {".ipynb_checkpoints__ada-checkpoint": OURS, "__MACOSX__ada": OURS, "ada": OURS, "notes": OTHER}
    (tmp_path / "away.ipynb").symlink_to(tmp_path / "ada.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    for name, text in names.items():
        path = tmp_path / f"{name.replace('__ada', '/ada')}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert [one.student for one in collect(tmp_path, LAB) if one.path] == ["ada"]


def test_a_link_has_its_own_time_and_not_that_of_the_file_it_leads_to(tmp_path):
    target, folder = tmp_path / "target", tmp_path / "class"
    target.write_text("", encoding="utf-8")
    (folder / "ada").mkdir(parents=True)
    (folder / "ada" / "lab.ipynb").symlink_to(target)
    os.utime(target, (1e9, 1e9))
    os.utime(folder / "ada" / "lab.ipynb", (1.5e9, 1.5e9), follow_symlinks=False)
    (one,) = collect(folder, LAB)
    assert one.path is None and one.time is not None and one.time.timestamp() == 1.5e9


def test_names_are_safe_and_differ(tmp_path):
    for name in ("=1+1", "+x", "a:b", "a;b", "A_b", "Zoë Müller", "-", "x" * 200):
        (tmp_path / f"{name}.ipynb").write_text(OURS, encoding="utf-8")
    names = [one.student for one in collect(tmp_path, LAB)]
    assert len({name.casefold() for name in names}) == len(names) == 8
    assert "Zoë Müller" in names and {"_1+1", "_x"} <= {name[:-7] for name in names}
    assert all(len(name) <= 107 and "/" not in name and name.strip(".") for name in names)


@pytest.mark.parametrize(
    "alike", [("Ana [A]", "Ana (A)", "Ana {A}"), ("x" * 150 + "a", "x" * 150 + "b", "y"), ("Ada", "ada", "ADA")]
)
def test_a_name_does_not_move_to_another_student(alike):
    first, second, third = alike
    grown = dict(zip(alike, safe_names(alike), strict=True))
    for few in ([first], [first, second], [second, third], [third, first]):
        names = dict(zip(few, safe_names(few), strict=True))
        assert not any(grown[other] == name for one, name in names.items() for other in alike if other != one)
        is_alone = len(few) == 1 and alike[0] == "Ada"  # that capital letters alone will differ is not known then
        assert is_alone or all(grown[one] == name for one, name in names.items())


def test_no_student_has_the_name_of_a_file_of_the_results():
    names = safe_names(["findings", "Findings-2", "grades", "Gradebook", "findings of ada"])
    assert names[-1] == "findings of ada" and not {"findings", "findings-2", "grades", "gradebook"} & set(
        map(str.casefold, names)
    )


@pytest.mark.parametrize("name", ["Thumbs.db", "desktop.ini", "Icon\r"])
def test_what_a_system_leaves_in_a_folder_is_nobodys(tmp_path, name):
    (tmp_path / "ada.ipynb").write_text(OURS, encoding="utf-8")
    (tmp_path / "bob.pdf").write_text("", encoding="utf-8")
    (tmp_path / name).write_text("", encoding="utf-8")
    assert [one.student for one in collect(tmp_path, LAB)] == ["ada", "bob"]


def test_folders_of_folders_of_students_are_refused(tmp_path):
    names = ("A__ada__lab", "A__bob__lab", "B__cleo__lab")
    with pytest.raises(LabError, match=r"^Most folders hold several folders with a .* as A has ada, bob: grade one of"):
        handed(tmp_path, **dict.fromkeys((*names, "B__dan__lab"), OURS))
    (tmp_path / "B" / "dan" / "lab.ipynb").unlink()
    first, second = collect(tmp_path, LAB)
    assert first.note == "There are notebooks in 2 folders, ada, bob: ask whether they are students."
    assert (second.student, second.note) == ("B", "")


def test_folders_of_one_name_in_all_students_folders_are_parts_of_their_work(tmp_path):
    names = [f"{student}__{part}__lab" for student in ("ada", "bob", "cleo") for part in ("original", "Work")]
    assert list(handed(tmp_path, **dict.fromkeys([*names, "ada__mine__lab"], OURS))) == ["ada", "bob", "cleo"]
    asked = "There are notebooks in 3 folders, Work, mine, original: ask whether they are students."
    assert [one.note for one in collect(tmp_path, LAB)] == [asked, "", ""]


def test_notebooks_of_one_name_are_told_apart(tmp_path):
    written = OURS.replace("corner = None  # your number", "corner = 50.39")
    handed(tmp_path, ada__old__lab=written, ada__new__lab=written + "\n", bob__lab=OURS, cleo__lab=OURS)
    assert collect(tmp_path, LAB)[0].note.startswith(
        "Of 2 notebooks new/lab.ipynb was graded, because it has as many answers as others (1; old/lab.ipynb has 1)"
    )


def zipped(tmp_path, **members):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/") + ".ipynb", text)
        archive.writestr("ada/picture.png", "no notebook")
    return path


def test_zips_in_the_folders_of_students(tmp_path):
    place, inner = tmp_path / "class", tmp_path / "inner"
    inner.mkdir()
    handed(place, eve__lab=OURS)
    written = OURS.replace("corner = None  # your number", "corner = 50.39")
    for student, members in {"ada": {"draft": OURS, "sub__final": written}, "bob": {}, "kim": {"x": OTHER}}.items():
        (place / student).mkdir()
        zipped(place / student, **members).rename(place / student / "lab9.ZIP")
    (place / "pat").mkdir()
    (place / "pat" / "lab9.zip").write_text("no zip", encoding="utf-8")
    found = {one.student: one for one in collect(place, LAB, unpacked=inner)}
    assert found["ada"].path.name == "final.ipynb" and found["ada"].path.read_text(encoding="utf-8") == written
    assert found["ada"].path.stat().st_mtime == (place / "ada" / "lab9.ZIP").stat().st_mtime
    assert found["bob"].problem == "lab9.ZIP cannot be unpacked (it holds no notebook): ask for the notebook itself."
    assert found["kim"].problem.startswith("x.ipynb is another notebook")
    assert found["pat"].problem.startswith("lab9.zip cannot be unpacked (File is not a zip file)")
    assert found["eve"].path == place / "eve" / "lab.ipynb" and not list(place.rglob("*/final.ipynb"))


def test_a_zip(tmp_path):
    archive = zipped(tmp_path, ada__lab=OURS, bob__lab=OURS, **{"..__out": OURS, "__root": OURS})
    folder = tmp_path / "inside" / "folder"
    folder.mkdir(parents=True)
    assert [one.student for one in collect(folder, LAB, unpacked(archive, folder))] == ["ada", "bob"]
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [
        "class.zip",
        "lab.ipynb",
        "lab.ipynb",
    ]


def test_a_zip_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(labs, "MAX_FILE_BYTES", 2**20)
    archive = zipped(tmp_path, ada=" " * 2**26, bob=OURS)
    folder = tmp_path / "folder"
    folder.mkdir()
    found = {one.student: one.problem for one in collect(folder, LAB, unpacked(archive, folder))}
    assert found == {"ada": "ada.ipynb is larger than 1 MiB: clear its outputs and save it again.", "bob": ""}
    assert (folder / "ada.ipynb").stat().st_size == 2**20 + 1, "no more was written"


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + bytes(10)])
def test_what_is_no_zip(tmp_path, content):
    path = tmp_path / "class.zip"
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"^class.zip cannot be unpacked: .*\.$"):
        unpacked(path, tmp_path)
