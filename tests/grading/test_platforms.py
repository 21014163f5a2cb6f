"""A class as learning platforms export it: whose notebook it is, which attempt counts, and when it came."""

import io
import unicodedata
import zipfile
from datetime import datetime

import pytest
from grading.demo_lab import demo_lab

from rooflab.grading.classroom import marking, platforms
from rooflab.grading.classroom.archives import unpacked
from rooflab.grading.classroom.submissions import collect
from rooflab.grading.lab import model as labs
from rooflab.grading.lab import release

LAB = demo_lab()
OURS = release.dumps(release.build(LAB))
CANVAS = ("lovelaceada_LATE_1234_56789_lab9_demo.ipynb", "müllerzoë_77_56790_lab9-1.ipynb")
MOODLE = ("Ada Lovelace_1234567_assignsubmission_file_", "Zoë Müller_7654321_assignsubmission_file")
BLACKBOARD = "Lab 9_{}_attempt_2026-01-{}-23-58-01_lab9_demo.ipynb"
BRIGHTSPACE = "{} - {} - Jan {}, 2026 {} PM"


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 31, 12, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return path


def found(tmp_path, *names, **members):
    """For each student the file, relative to the folder of the class, or what is wrong with it."""
    archive = zipped(tmp_path / "class.zip", **dict.fromkeys(names, OURS), **members)
    folder = tmp_path / "class"
    folder.mkdir()
    handed = collect(folder, LAB, unpacked(archive, folder))
    return {one.student: one.path.relative_to(folder).as_posix() if one.path else one.problem for one in handed}


def test_canvas(tmp_path):
    assert found(tmp_path, *CANVAS) == {"lovelaceada_1234": CANVAS[0], "müllerzoë_77": CANVAS[1]}
    assert platforms.named("anon_k3dQz_LATE_56789_lab9.ipynb") == platforms.Named("anon_k3dQz", late=True)
    assert platforms.named("lab9_2026_01_demo.ipynb") is None, "a student's own name for it"
    handed = collect(tmp_path / "class", LAB)
    assert [marking.is_late(one, marking.due_time("2020-02-01")) for one in handed] == [True, False]
    assert [marking.handed_in(one) for one in handed] == [None, None], "entries have the time of the export"


@pytest.mark.parametrize("between", ["/", "_"])
def test_moodle(tmp_path, between):
    students = ["Ada Lovelace_1234567", "Zoë Müller_7654321"]
    places = [folder.rstrip("_") + between + "lab9_demo.ipynb" for folder in MOODLE]
    assert found(tmp_path, *places) == dict(zip(students, places, strict=True))


@pytest.mark.parametrize("between", ["/", ""])
def test_text_typed_into_moodle_is_no_other_student(tmp_path, between):
    """Beside a file, or alone."""
    ada, zoe = "Ada Lovelace_11_assignsubmission_", "Zoë Müller_22_assignsubmission_onlinetext_"
    names = [f"{ada}file_{between}lab9.ipynb", f"{ada}onlinetext_{between}text.html", f"{zoe}{between}text.html"]
    there = found(tmp_path, names[0], **dict.fromkeys(names[1:], "Hello."))
    assert there["Ada Lovelace_11"] == names[0] and "no notebook, only" in there["Zoë Müller_22"] and len(there) == 2


MEMBERS = """---
submission_11:
  :submitters:
  - :name: Ada Lovelace
    :sid: '123'
    :email: ada@example.org
  :created_at: 2026-01-31 10:00:00.000000000 Z
  :status: processed
submission_12:
  :submitters:
  - :name: Zoë Müller
    :sid:
    :email: zoe@example.org
  - :name: Bob
    :sid: 7
  :created_at: 2026-02-02 10:00:00.123456789 -08:00
"""


def test_gradescope_and_its_groups(tmp_path):
    top = "assignment_5_export"
    ada, group, other = (f"{top}/submission_{number}/lab9_demo.ipynb" for number in (11, 12, 13))
    handed = found(tmp_path, ada, group, other, **{f"{top}/{platforms.GRADESCOPE}": MEMBERS})
    students = {"Ada Lovelace_123": ada, "Bob_7": group, "Zoë Müller_zoe@example.org": group, "submission_13": other}
    assert handed == students
    times = {one.student: one.time and one.time.timestamp() for one in collect(tmp_path / "class", LAB)}
    assert times["Ada Lovelace_123"] == marking.due_time("2026-01-31T10:00:00+00:00").timestamp()
    assert int(times["Bob_7"]) == marking.due_time("2026-02-02T18:00:00+00:00").timestamp()


def test_one_submission_in_the_export_of_gradescope(tmp_path):
    place = "submission_11/lab9_demo.ipynb"
    assert found(tmp_path, place, **{platforms.GRADESCOPE: MEMBERS})["Ada Lovelace_123"] == place


SUBMISSION = """submission_{0}:
  :submitters:
  - :name: {1}
    :sid: {2}
    :email: {3}
  :created_at: {4}
"""
TIME = "2026-01-31 10:00:00.000000000 Z"
OF_RAILS = """!ruby/object:ActiveSupport::TimeWithZone
    utc: &1 2026-01-31 10:00:00.318690000 Z
    time: *1
  :results: !ruby/hash:ActiveSupport::HashWithIndifferentAccess
    tests: !ruby/array:Array [1]"""


def export(*submissions):
    return "".join(SUBMISSION.format(*one) for one in submissions)


@pytest.mark.parametrize(
    "name, sid, email, time, student",
    [
        ("Ada", "'12'", "ada@x.org", TIME, "Ada_12"),
        ("Ada", "", "ada@x.org", OF_RAILS, "Ada_ada@x.org"),
        ("", "333", "", TIME, "333"),
        ("", "", "ada@x.org", TIME, "ada@x.org"),
        ("", "", "", TIME, "submission_1"),
        ('"O\'Brien: Zoë #1"', "", "", TIME, "O_Brien_ Zoë _1_1cc42d"),
    ],
)
def test_one_submission_in_the_folder_of_gradescopes_export(tmp_path, name, sid, email, time, student):
    """Its own name was the student's, as long as the export held a single notebook."""
    top, place = "assignment_5_export", "submission_1/my work/lab9 (1).ipynb"
    listed = {f"{top}/{platforms.GRADESCOPE}": export((1, name, sid, email, time))}
    assert found(tmp_path, f"{top}/{place}", **listed) == {student: f"{top}/{place}"}
    (one,) = collect(tmp_path / "class", LAB)
    assert one.time and int(one.time.timestamp()) == marking.due_time("2026-01-31T10:00:00Z").timestamp()


def test_who_is_in_gradescopes_list_without_files_has_a_row(tmp_path):
    listed = export((1, "Ada", 1, "", TIME), (2, "Bob", 2, "", TIME), (3, "Ada", 1, "", TIME))
    handed = found(tmp_path, "submission_1/lab9_demo.ipynb", **{platforms.GRADESCOPE: listed})
    assert handed == {
        "Ada_1": "submission_1/lab9_demo.ipynb",
        "Bob_2": "submission_metadata.yml names this student, and the export has no files of the submission.",
    }


def test_a_later_attempt_that_cannot_be_graded_is_said(tmp_path):
    listed = export((1, "Ada", 1, "", TIME), (2, "Ada", 1, "", TIME.replace("10:", "11:")))
    good, bad = "submission_1/lab9_demo.ipynb", "submission_2/lab9_demo.ipynb"
    assert found(tmp_path, good, **{platforms.GRADESCOPE: listed, bad: "{"}) == {"Ada_1": good}
    (one,) = collect(tmp_path / "class", LAB)
    assert one.note == "A later attempt was not graded: lab9_demo.ipynb is not a notebook: it is not JSON."


@pytest.mark.parametrize("text", ["submission_11: [", "submission_11: {}", "- a", "\ud800"])
def test_a_list_that_gradescope_did_not_write(tmp_path, text):
    (tmp_path / platforms.GRADESCOPE).write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(
        labs.LabError, match=r"^submission_metadata.yml does not name students as Gradescope does: \w+\.$"
    ):
        collect(tmp_path, LAB)


def test_what_cannot_be_graded_was_handed_in_at_a_time_too(tmp_path):
    pages = [name.replace(".ipynb", ".html") for name in CANVAS]
    broken = f"{MOODLE[0]}/lab9_demo.ipynb"
    assert "not a notebook" in found(tmp_path, **{broken: "{"})["Ada Lovelace_1234567"]
    (one,) = collect(tmp_path / "class", LAB)
    assert marking.handed_in(one) == datetime(2026, 1, 31, 12).astimezone()
    (tmp_path / "canvas").mkdir()
    for name in pages:
        (tmp_path / "canvas" / name).touch()
    assert [(one.path, one.late, one.time) for one in collect(tmp_path / "canvas", LAB)] == [
        (None, True, None),
        (None, False, None),
    ]


def test_blackboard_and_the_last_attempt(tmp_path):
    first, last = (BLACKBOARD.format("ada_l", day) for day in (30, 31))
    other = BLACKBOARD.format("bob_l", 29)
    said = {first.replace("_lab9_demo.ipynb", ".txt"): "Name: Ada"}
    assert found(tmp_path, first, last, other, **said) == {"ada_l": last, "bob_l": other}
    (one, _) = collect(tmp_path / "class", LAB)
    assert marking.handed_in(one).timestamp() == datetime(2026, 1, 31, 23, 58, 1).timestamp()


def test_brightspace_and_the_last_attempt(tmp_path):
    first, last = (BRIGHTSPACE.format("12345-67890", "Ada Lovelace", 31, clock) for clock in ("112", "1159"))
    other = "9-67890 - Ada Lovelace- Feb 1, 2026 1205 AM - lab9_demo.ipynb"
    places = [f"{folder}/lab9_demo.ipynb" for folder in (first, last)]
    students = found(tmp_path, *places, other, **{"index.html": "<html>"})
    assert students == {"Ada Lovelace 12345-67890": places[1], "Ada Lovelace 9-67890": other}
    times = [marking.handed_in(one) for one in collect(tmp_path / "class", LAB)]
    times.append(platforms.named(first).time)
    expected = [datetime(2026, 1, 31, 23, 59), datetime(2026, 2, 1, 0, 5), datetime(2026, 1, 31, 13, 12)]
    assert [time.timestamp() for time in times] == [time.timestamp() for time in expected]


def test_two_notebooks_of_one_student_are_not_two_students(tmp_path):
    names = [f"lovelaceada_12_{attachment}_lab9.ipynb" for attachment in (5, 6)]
    assert found(tmp_path, *names) == {"lovelaceada_12": names[0]}


ADA, EVE = (f"{name} Lovelace_{number}_assignsubmission_file_" for name, number in (("Ada", 11), ("Eve", 22)))
FORGED = {  # what Eve hands in beside what Ada does, and whose names there are then
    "in a Moodle folder": ([f"{EVE}/{ADA}/lab.ipynb"], f"{ADA}/lab.ipynb", ["Ada Lovelace_11", "Eve Lovelace_22"]),
    "as a Moodle file": ([f"{EVE}/{ADA}lab.ipynb"], f"{ADA}/lab.ipynb", ["Ada Lovelace_11", "Eve Lovelace_22"]),
    "in a folder": (["eve/" + ADA + "lab.ipynb"], "ada/lab.ipynb", ["ada", "eve"]),
    "deep in a folder": ([f"eve/a/{ADA}/b/lab.ipynb"], "ada/lab.ipynb", ["ada", "eve"]),
    "as another platform": ([f"{EVE}/ada_1_2_lab.ipynb"], f"{ADA}/lab.ipynb", ["Ada Lovelace_11", "Eve Lovelace_22"]),
    "another platform's mark in one name": (
        [BLACKBOARD.format("eve", 30).replace("lab9_demo", f"{ADA}lab")],
        BLACKBOARD.format("ada", 31),
        ["ada", "eve"],
    ),
    "an earlier time": (
        [BLACKBOARD.format("eve", 30).replace("lab9_demo", BLACKBOARD.format("ada", 29))],
        BLACKBOARD.format("ada", 31),
        ["ada", "eve"],
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_the_outermost_name_decides(tmp_path, case):
    forged, honest, students = FORGED[case]
    assert list(found(tmp_path, *forged, honest)) == students


def test_the_outermost_name_decides_in_a_students_zip(tmp_path):
    inner = archive_of(**{f"{ADA}/lab.ipynb": OURS, "ada_LATE_1_2_lab.ipynb": OURS})
    students = found(tmp_path, f"{ADA}/lab.ipynb", **{f"{EVE}/work.zip": inner})
    assert list(students) == ["Ada Lovelace_11", "Eve Lovelace_22"]


def test_sections_of_a_class_are_no_students(tmp_path):
    places = [f"section{number}/{name}/lab.ipynb" for number, name in enumerate((ADA, EVE, EVE.replace("Eve", "Zoe")))]
    assert list(found(tmp_path, *places)) == ["Ada Lovelace_11", "Eve Lovelace_22", "Zoe Lovelace_22"]


def test_a_zip_inside_has_the_time_of_the_zip(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(zipfile.ZipInfo("lab.ipynb", (2001, 1, 1, 0, 0, 0)), OURS)
    found(tmp_path, "ada/lab.ipynb", **{"eve/work.zip": inner.getvalue()})
    times = {one.student: marking.handed_in(one) for one in collect(tmp_path / "class", LAB)}
    assert times["eve"] == times["ada"] == datetime(2026, 1, 31, 12).astimezone()


def archive_of(**members):
    return zipped(io.BytesIO(), **members).getvalue()


def test_zips_that_students_made(tmp_path, monkeypatch):
    monkeypatch.setattr(labs, "MAX_FILE_BYTES", 2**20)
    outside = str(tmp_path / "outside.ipynb")
    inner = {
        "adams_1_5_work.zip": archive_of(**{"deep/lab9.ipynb": OURS, "__MACOSX/deep/._lab9.ipynb": "x"}),
        "baker_2_6_work.zip": archive_of(**{"notes.txt": "none"}),
        "clark_3_7_work.zip": b"no zip",
        "davis_4_8_work.zip": archive_of(**dict.fromkeys(["../../out.ipynb", "..\\out.ipynb", outside], OURS)),
        "evans_5_9_work.zip": archive_of(**{"large.ipynb": " " * 2**21}),
        "frank_6_9_work.zip": archive_of(**{f"{number}.ipynb": "{}" for number in range(101)}),
        "green_7_9_work.zip": archive_of(**{"a.ipynb": OURS, "a.ipynb/b.ipynb": OURS}),
    }
    students = found(tmp_path, "harris_8_9_lab9.ipynb", **inner)
    why = {"clark": "File is not a zip file", "evans": "it holds more than 1 MiB or 100 notebooks"}
    why["frank"] = why["evans"]
    problem = "{} cannot be unpacked ({}): ask for the notebook itself."
    expected = {
        name[: name.index("_", 6)]: problem.format(name, why.get(name[:5], "it holds no notebook")) for name in inner
    }
    expected |= {"adams_1": "adams_1_5_work/deep/lab9.ipynb", "green_7": "green_7_9_work/a.ipynb"}
    assert students == expected | {"harris_8": "harris_8_9_lab9.ipynb"}
    assert not list(tmp_path.glob("*.ipynb")), "what leads out of the folder is left"


def test_a_zip_beside_the_students_is_nobodys(tmp_path):
    zipped(tmp_path / "class.zip", **{"ada/lab.ipynb": OURS})
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "work.zip").write_bytes(b"")
    handed = {one.student: one.problem for one in collect(tmp_path, LAB)}
    assert list(handed) == ["ada"] and "work.zip is a zip without a notebook" in handed["ada"]


def test_names_that_other_programs_wrote(tmp_path, monkeypatch):
    """Folders separated by `\\`, accents as characters of their own, and UTF-8 that is not marked as such."""
    apart = unicodedata.normalize("NFD", "Zoë")
    path, folder = tmp_path / "class.zip", tmp_path / "class"
    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipInfo, "_encodeFilenameFlags", lambda self: (self.filename.encode(), 0))
        zipped(path, **{"Ömer\\lab9.ipynb": OURS, f"{apart}\\lab9.ipynb": OURS})
    assert [one.student for one in collect(folder, LAB, unpacked(path, folder))] == ["Zoë", "Ömer"]
