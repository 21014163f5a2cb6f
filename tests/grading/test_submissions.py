"""Which notebook in a folder or a zip belongs to which student."""

import json
import zipfile

import pytest
from grading.demo_lab import demo_lab

from rooflab.grading.classroom.submissions import collect, unpacked
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


def test_one_student_alone(tmp_path):
    assert list(handed(tmp_path, ada__lab=OURS)) == ["ada"]


def test_two_notebooks_of_the_lab(tmp_path):
    whole = json.loads(OURS)
    half = json.dumps(whole | {"cells": whole["cells"][:2]})
    found = handed(tmp_path, ada__lab=OURS, ada__start=half, bob__lab=OURS, bob__copy=OURS)
    assert found == {"ada": "ada/lab.ipynb", "bob": "There are 2 notebooks of this lab: copy.ipynb, lab.ipynb."}


def test_what_cannot_be_read_is_said(tmp_path):
    found = handed(tmp_path, ada="{", bob=OURS, eve__lab=OURS, eve__notes="{")
    assert found == {"ada": "ada.ipynb is not a notebook: it is not JSON.", "bob": "bob.ipynb", "eve": "eve/lab.ipynb"}


def test_what_is_nobodys(tmp_path):
    names = {".ipynb_checkpoints__ada-checkpoint": OURS, "__MACOSX__ada": OURS, "ada": OURS, "notes": OTHER}
    (tmp_path / "away.ipynb").symlink_to(tmp_path / "ada.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    for name, text in names.items():
        path = tmp_path / f"{name.replace('__ada', '/ada')}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert [one.student for one in collect(tmp_path, LAB)] == ["ada"]


def test_names_are_safe_and_differ(tmp_path):
    for name in ("=1+1", "+x", "a:b", "a;b", "A_b", "Zoë Müller", "-", "x" * 200):
        (tmp_path / f"{name}.ipynb").write_text(OURS, encoding="utf-8")
    names = [one.student for one in collect(tmp_path, LAB)]
    assert len({name.casefold() for name in names}) == len(names) == 8
    assert "Zoë Müller" in names and {"_1+1", "_x"} <= set(names)
    assert all(len(name) <= 102 and "/" not in name and name.strip(".") for name in names)


def zipped(tmp_path, **members):
    path = tmp_path / "class.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/") + ".ipynb", text)
        archive.writestr("ada/picture.png", "no notebook")
    return path


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
    monkeypatch.setattr(labs, "MAX_NOTEBOOK_BYTES", 2**20)
    archive = zipped(tmp_path, ada=" " * 2**26, bob=OURS)
    folder = tmp_path / "folder"
    folder.mkdir()
    found = {one.student: one.problem for one in collect(folder, LAB, unpacked(archive, folder))}
    assert found == {"ada": "ada.ipynb is larger than 1 MiB.", "bob": ""}
    assert (folder / "ada.ipynb").stat().st_size == 2**20 + 1, "no more was written"


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x05\x06" + bytes(10)])
def test_what_is_no_zip(tmp_path, content):
    path = tmp_path / "class.zip"
    path.write_bytes(content)
    with pytest.raises(LabError, match=r"^class.zip cannot be unpacked: .*\.$"):
        unpacked(path, tmp_path)
