"""What a student hands in may be broken in any way. It is that student's row, and all others get their grade."""

import io
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from grading.demo_lab import GRADE, SOURCE, TRUSTED, demo_lab

from rooflab.grading.classroom import marking, similarity
from rooflab.grading.classroom.archives import unpacked
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.marking import Manual
from rooflab.grading.classroom.submissions import Handed, collect
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError

LAB = demo_lab()
OURS = release.dumps(release.build(LAB))
EVE = "eve/lab.ipynb"
# The two headers of an entry: how they begin, where flags and checksum are, and where the name begins.
HEADERS = ((b"PK\x03\x04", 6, 14, 30), (b"PK\x01\x02", 8, 16, 46))


def archive_of(*names, **members):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (dict.fromkeys(names, OURS) | members).items():
            archive.writestr(name, content)
    return made.getvalue()


def changed(content, name, flags=0, method=8, checksum=None, renamed=None, data=b"", magic=None):
    """A zip with the headers of one entry, or its compressed data, changed."""
    made = bytearray(content)
    for begins, flags_at, checksum_at, size in HEADERS:
        at = made.find(begins)
        while made[at + size :][: len(name)] != name.encode():
            at = made.find(begins, at + 1)
        struct.pack_into("<HH", made, at + flags_at, flags, method)
        if checksum is not None:
            struct.pack_into("<I", made, at + checksum_at, checksum)
        made[at + size : at + size + len(name)] = renamed or name.encode()
        if begins == HEADERS[0][0]:
            made[at + size + len(name) : at + size + len(name) + len(data)] = data
            made[at : at + 4] = magic or begins
    return bytes(made)


WHOLE = archive_of("good/lab.ipynb", EVE)
BROKEN = {  # what is said, and the zip
    "deflate": ("Error -3 while decompressing data", changed(WHOLE, EVE, data=b"\xff" * 64)),
    "checksum": ("Bad CRC-32", changed(WHOLE, EVE, checksum=1)),
    "password": ("(it is encrypted)", changed(WHOLE, EVE, flags=1)),
    "strong_password": ("strong encryption", changed(WHOLE, EVE, flags=64)),
    "method": ("compression method is not supported", changed(WHOLE, EVE, method=99)),
    "bzip2": ("Invalid data stream", changed(WHOLE, EVE, method=12)),
    "lzma": ("", changed(WHOLE, EVE, method=14)),
    "header": ("Bad magic number", changed(WHOLE, EVE, magic=b"PK\x03\x05")),
    "name": ("can't decode byte 0xff", changed(WHOLE, EVE, flags=0x800, renamed=b"eve/\xff\xfe\xff.ipynb")),
}


def rows(tmp_path, content):
    """What each student of a class's zip has: a file or a problem."""
    archive, folder = tmp_path / "class.zip", tmp_path / "class"
    archive.write_bytes(content)
    folder.mkdir()
    return {one.student: one.problem or one.path for one in collect(folder, LAB, unpacked(archive, folder))}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_in_the_zip_of_a_class(tmp_path, kind):
    why, content = BROKEN[kind]
    found = rows(tmp_path, content)
    assert found["good"] == tmp_path / "class" / "good" / "lab.ipynb"
    assert why in found["eve"] and " cannot be unpacked (" in found["eve"]
    assert found["eve"].endswith("): ask for the notebook itself.") and len(found) == 2


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_in_a_students_zip(tmp_path, kind):
    why, content = BROKEN[kind]
    found = rows(tmp_path, archive_of("good/lab.ipynb", **{"eve/work.zip": content}))
    assert found["good"] == tmp_path / "class" / "good" / "lab.ipynb"
    assert found["eve"].startswith("work.zip cannot be unpacked (") and why in found["eve"] and len(found) == 2


def test_a_name_ends_at_its_zero(tmp_path):
    found = rows(tmp_path, changed(WHOLE, EVE, renamed=b"eve.ipynb\0zip"))
    assert found == {"good": tmp_path / "class" / "good" / "lab.ipynb", "eve": tmp_path / "class" / "eve.ipynb"}


def test_a_zip_cut_off_anywhere(tmp_path):
    inner = archive_of("lab.ipynb")
    cuts = range(0, len(inner), 97)
    found = rows(tmp_path, archive_of("good/lab.ipynb", **{f"s{cut}/work.zip": inner[:cut] for cut in cuts}))
    assert found.pop("good") == tmp_path / "class" / "good" / "lab.ipynb"
    assert set(found) == {f"s{cut}" for cut in cuts}
    assert all("cannot be unpacked (" in problem for problem in found.values())


def test_zips_in_zips_and_names_that_no_disk_takes(tmp_path):
    within = archive_of("lab.ipynb")
    for _ in range(5):
        within = archive_of(**{"work.zip": within})
    deep, long = "deep/" + "a/" * 2000 + "lab.ipynb", "long/" + "x" * 300 + ".ipynb"
    members = {"all/nested/work.zip": within, f"all/{deep}": OURS, f"all/{long}": OURS, "all/file/a.ipynb": OURS}
    found = rows(tmp_path, archive_of("all/good/lab.ipynb", "all/file/a.ipynb/b.ipynb", **members))
    assert found.pop("good") == tmp_path / "class" / "all" / "good" / "lab.ipynb"
    assert "it holds no notebook" in found["nested"]
    assert "more than 100 folders lie one in the other" in found["deep"]
    assert "File name too long" in found["long"] and len(found) == 4


@pytest.mark.parametrize("name", ["{}.ipynb", "{}.txt", "{}/", "{}/eve/lab.ipynb"])
def test_a_long_name_costs_no_other_student_a_grade(tmp_path, name):
    content = archive_of("good.ipynb", name.format("x" * 300))
    assert rows(tmp_path, content).get("good") == tmp_path / "class" / "good.ipynb"


def test_a_long_folder_around_all(tmp_path):
    found = rows(tmp_path, archive_of(*("x" * 300 + f"/{name}/lab.ipynb" for name in ("ada", "eve"))))
    assert set(found) == {"ada", "eve"} and all("File name too long" in said for said in found.values())


@pytest.mark.slow
def test_folders_deeper_than_python_calls(tmp_path):
    (tmp_path / "class" / "good").mkdir(parents=True)
    (tmp_path / "class" / "good" / "lab.ipynb").write_text(OURS, encoding="utf-8")
    (tmp_path / "class" / "loop.ipynb").symlink_to("loop.ipynb")
    (tmp_path / "class" / "eve").symlink_to(tmp_path / "class")
    inside = os.open(tmp_path / "class" / "good", os.O_RDONLY)
    for _ in range(1100):  # Python calls go 1000 deep
        os.mkdir("d", dir_fd=inside)
        inside, before = os.open("d", os.O_RDONLY, dir_fd=inside), inside
        os.close(before)
    os.close(inside)
    try:
        assert [one.student for one in collect(tmp_path / "class", LAB) if one.path] == ["good"]
    finally:
        subprocess.run(["rm", "-r", tmp_path / "class"], check=True)  # Python's own removal is recursive


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    for name in ("ada", "eve", ".cache"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "lab.ipynb").write_text(OURS, encoding="utf-8")
    scan = os.scandir

    def refused(path):
        if Path(path).name in ("eve", ".cache"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)
    found = {one.student: one.problem for one in collect(tmp_path, LAB)}
    assert found == {"ada": "", "eve": "The folder eve cannot be read: Permission denied."}


def test_a_full_disk_is_no_students_fault(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    (tmp_path / "class.zip").touch()
    with (tmp_path / "class.zip").open("wb") as file:
        file.write(WHOLE)
    with pytest.raises(LabError, match="No space left on device"):
        unpacked(tmp_path / "class.zip", tmp_path)


def test_names_fit_a_file_system(tmp_path):
    for name in ("名" * 60, "名" * 59 + "字", "ё" * 100):
        (tmp_path / f"{name}.ipynb").write_text(OURS, encoding="utf-8")
    names = [one.student for one in collect(tmp_path, LAB)]
    assert len(set(names)) == 3 and all(len(f"{name}.json.4194304.part".encode()) < 256 for name in names)


@pytest.mark.parametrize("where", ["_graded", "_origin"])
def test_whatever_grading_raises_is_one_students_row(tmp_path, monkeypatch, where):
    paths = {name: tmp_path / f"{name}.ipynb" for name in ("ada", "eve")}
    for path in paths.values():
        path.write_text(OURS, encoding="utf-8")
    if where == "_origin":
        paths["eve"].unlink()

    def graded(self, one, folder):
        if one.student == "eve" and where == "_graded":
            raise RecursionError("maximum recursion depth exceeded")
        one.path.read_bytes()
        return {"status": "done", "points": 1}

    monkeypatch.setattr(Batch, "_graded", graded)
    class_of = Batch(LAB, tmp_path, TRUSTED)
    handed = [class_of.with_seed(Handed(name, path)) for name, path in paths.items()]
    assert [class_of.known(one) for one in handed] == [None, None]
    results = {one["student"]: one for one in class_of.grade(handed, 2)}
    assert results["ada"]["points"] == 1 and results["eve"]["status"] == "failed"
    assert results["eve"]["why"].startswith("It could not be graded: ")
    for one in handed:
        whole = class_of.complete(results[one.student], one, marking.Deadline(marking.due_time("2026-01-31")), Manual())
        assert bool(whole["handed_in"]) == (one.path.exists()), whole
    class_of.write_table(list(results.values()))


def test_a_time_that_no_calendar_has(tmp_path, monkeypatch):
    def no_time(path):
        raise OverflowError("year 292277026596 is out of range")

    monkeypatch.setattr(marking, "handed_in", no_time)
    path = tmp_path / "eve.ipynb"
    path.write_text(OURS, encoding="utf-8")
    result = {"student": "eve", "status": "done", "points": 3}
    whole = Batch(LAB, tmp_path, TRUSTED).complete(
        result, Handed("eve", path), marking.due_time("2026-01-31"), Manual()
    )
    assert (whole["points"], whole["handed_in"], whole["late"]) == (3, "", None)
    assert whole["why"].startswith("It is not known when this was handed in: year 292277026596")


def test_an_answer_that_cannot_be_compared(tmp_path, monkeypatch):
    whole = similarity.as_python
    monkeypatch.setattr(similarity, "as_python", lambda text: whole(text) if "eve" not in text else 1 / 0)
    handed = []
    for name in ("ada", "eve"):
        handed.append(Handed(name, tmp_path / f"{name}.ipynb"))
        handed[-1].path.write_text(OURS.replace("corner = None", f"corner = {name!r}"[:-1] + "'"), encoding="utf-8")
    count, left_out = similarity.write(tmp_path / "similar", LAB, handed)
    assert count == 1 and left_out == ["The answers of eve cannot be compared: division by zero."]


@pytest.mark.slow
def test_a_class_with_broken_archives_gets_its_grades(tmp_path):
    inner = {f"{kind}/work.zip": content for kind, (_, content) in BROKEN.items()}
    outer = archive_of("Zoë/lab.ipynb", EVE, **inner)
    (tmp_path / "class.zip").write_bytes(changed(outer, EVE, flags=0x800, renamed=b"eve/\xff\xfe\xff.ipynb"))
    command = [sys.executable, "-m", "rooflab", "grade", "lab9", "class.zip", "--labs", str(SOURCE.parent), *GRADE[2:]]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == ""
    assert "Zo?: 0 of 12 points" in done.stdout and f"1 graded, {len(inner) + 1} could not be graded" in done.stdout
    assert "eve: not graded." in done.stdout
