"""A list of the class: nobody who handed in nothing is missing."""

from pathlib import Path

import pytest
from grading.demo_lab import TRUSTED, demo_lab

from rooflab.grading.classroom import platforms, roster, tables
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.submissions import Handed, collect
from rooflab.grading.lab.model import LabError

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77)
,,,,,Manual Posting
    Points Possible,,,,,100
"Lovelace, Ada",1234,s-1,ada1,A,
"Müller, Zoë",77,s-2,zoe,A,
"Hopper, Grace",5,s-3,gh,B,
"Student, Test",9,,,A,
"""
SIS = """user_id,login_id,first_name,last_name,role,status
s-1,ada1,Ada,Lovelace,student,active
s-2,zoe,Zoë,Müller,student,active
s-3,gh,Grace,Hopper,student,active
s-4,teach,Alan,Turing,teacher,active
s-5,gone,Left,Class,student,deleted
"""
EXCEL = SIS.replace(",", ";")
LINES = "Ada Lovelace\nZoë Müller\n\nHopper, Grace\n"


def rows(tmp_path, text, *students):
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8-sig")
    handed = [Handed(student, Path(f"{student}.ipynb")) for student in students]
    found = roster.with_all(handed, roster.read(tmp_path / "roster.csv"))
    return {one.student: one.note if one.path else one.problem for one in found}


@pytest.mark.parametrize("text", [CANVAS, SIS, EXCEL, LINES], ids=["canvas", "sis", "excel", "lines"])
@pytest.mark.parametrize(
    "students",
    [
        ("lovelaceada_1234", "müllerzoë_77"),
        ("Ada Lovelace_1234567", "Zoe Muller_7654321"),
        ("Ada Lovelace 12345-67890", "Zoë Müller 9-67890"),
        ("lovelace ada", "MULLER, Zoe"),
        ("Ada_Lovelace", "zoe.mueller@x.org_77"),
    ],
)
def test_who_handed_in_nothing_is_a_row(tmp_path, text, students):
    if students[0] == "Ada_Lovelace" and text != CANVAS:
        pytest.skip("a number that only Canvas has")
    found = rows(tmp_path, text, *students)
    missing = {name for name, said in found.items() if said}
    assert missing in ({"Hopper_ Grace"}, {"Grace Hopper"}) and found[missing.pop()] == "No file was handed in."
    assert len(found) == 3


@pytest.mark.parametrize("student", ["ada1", "s-1", "lab_1234"])
def test_by_a_login_or_a_number(tmp_path, student):
    assert set(rows(tmp_path, CANVAS, student)) == {student, "Müller_ Zoë", "Hopper_ Grace"}


def test_who_is_not_on_the_list_keeps_the_row(tmp_path):
    found = rows(tmp_path, "Ada Lovelace", "Ada Lovelace", "eve")
    assert found == {"Ada Lovelace": "", "eve": "This student is not on the roster."}


def test_a_name_that_is_not_safe_is_on_the_roster(tmp_path):
    (tmp_path / "class.csv").write_text("Name\nAda O'Brien\n", encoding="utf-8")
    (tmp_path / "class" / "O'Brien, Ada").mkdir(parents=True)
    (tmp_path / "class" / "O'Brien, Ada" / "a.pdf").touch()
    (one,) = roster.with_all(collect(tmp_path / "class", demo_lab()), roster.read(tmp_path / "class.csv"))
    assert one.student.startswith("O_Brien_ Ada_") and "roster" not in one.problem


def test_two_students_of_one_name(tmp_path):
    text = 'Student,ID\n"Lovelace, Ada",1234\n"Lovelace, Ada",1235\n'
    assert list(rows(tmp_path, text, "lovelaceada_1234", "lovelaceada_1235").values()) == ["", ""]
    found = rows(tmp_path, text, "lovelaceada_1234", "Ada Lovelace")
    assert found.pop("Lovelace_ Ada") == (
        "No file was handed in that is surely theirs: Ada Lovelace fits several students."
    )
    fits = "This row fits several students of the roster: Lovelace, Ada; Lovelace, Ada."
    assert found == {"lovelaceada_1234": "", "Ada Lovelace": fits}


def test_the_number_of_a_copy_or_a_lab_is_no_students(tmp_path):
    text = "name,id\nAda Lovelace,1\nAda Lovelace,2\nGrace Hopper,3\n"
    found = rows(tmp_path, text, "Ada Lovelace", "Ada Lovelace_2", "lab_3")
    assert found["Ada Lovelace"] == found["Ada Lovelace_2"] != "" and "fits several" in found["Ada Lovelace_2"]
    assert found["lab_3"] == "This student is not on the roster." and "3" in rows(tmp_path, text, "3")


def test_two_students_of_one_name_and_a_file_of_two_students(tmp_path):
    found = rows(tmp_path, "Ada Lovelace\nAda Lovelace\nGrace Hopper\n", "Ada Lovelace", "hopper")
    names = sorted(found)
    assert (names[0], names[3:]) == ("Ada Lovelace", ["Grace Hopper", "hopper"]) and names[2] == f"{names[1]}_2"
    found = rows(tmp_path, "Ada Lovelace\nGrace Hopper\n", "Ada Lovelace_Grace Hopper")
    assert "fits several students" in found.pop("Ada Lovelace") and "fits several" in found.pop("Grace Hopper")
    said = "This row fits several students of the roster: Ada Lovelace; Grace Hopper."
    assert found == {"Ada Lovelace_Grace Hopper": said}


@pytest.mark.parametrize("content", [bytes(range(256)), b"PK\x03\x04\0\0", "Name\nZoë\n".encode("utf-16")])
def test_what_is_no_text_is_no_list(tmp_path, content):
    (tmp_path / "bin.csv").write_bytes(content)
    with pytest.raises(LabError, match=r"^bin.csv is no text in UTF-8: save it as CSV in UTF-8"):
        roster.read(tmp_path / "bin.csv")


@pytest.mark.parametrize("text", ["", "\n\n", "Student,ID\n"])
def test_a_list_of_nobody(tmp_path, text):
    with pytest.raises(LabError, match=r"^roster.csv names no student: it needs a column such as Student or Name"):
        rows(tmp_path, text)


@pytest.mark.parametrize(
    "head",
    ["Matrikel,Kürzel,Gruppe", "Matrikel;Kürzel", "Matrikel\tKürzel", "Matrikel,Kürzel", "sep=;\nMatrikel;Kürzel"],
)
def test_columns_that_are_not_known_are_no_names(tmp_path, head):
    between = tables.delimiter(head)
    with pytest.raises(LabError, match=r"is a table that begins with .* none of these is known as a column"):
        rows(tmp_path, f"{head}\n12{between}ada1\n13{between}zoe\n")


@pytest.mark.parametrize(
    "text",
    [
        "\n\nStudent,ID\nAda Lovelace,1\nZoë Müller,2\n",
        "sep=;\r\nStudent;ID\r\nAda Lovelace;1\r\nZoë Müller;2\r\n",
        ",,\n,,\nStudent,ID,\nAda Lovelace,1,\nZoë Müller,2,\n",
        '"Note\nof us",Given Name,Family Name\nx,Ada,Lovelace\ny,Zoë,Müller\n',
        "OrgDefinedId,Section\nAda Lovelace,A\nZoë Müller,A\n",
        "Email\nada.lovelace@x.org\nzoe.muller@x.org\n",
        "SID,Section\nAda Lovelace,A\nZoë Müller,A\n",  # of Gradescope
        "Lovelace, Ada\nMüller, Zoë\n",
        "Lovelace,Ada\nMüller,Zoë\nKing, Martin, Jr.\n",
    ],
)
def test_other_lists(tmp_path, text):
    found = rows(tmp_path, text, "Ada Lovelace", "zoe muller")
    assert {name for name, said in found.items() if said} <= {"King_ Martin_ Jr"}


@pytest.mark.parametrize(
    "text", ["Name,ID\nAda,12\nAda1,2\n", "Name,Section\nAda,1\nAda,2\n", "Name,ID,Email\nA,1,a@x\nA,1,b@x\n"]
)
def test_two_students_stay_two(tmp_path, text):
    assert len(rows(tmp_path, text)) == 2


def test_a_quote_that_nothing_closes_hides_nobody(tmp_path):
    with pytest.raises(LabError, match=r"^roster.csv cannot be read as a table: .* Look at its quotes\.$"):
        rows(tmp_path, 'Name,ID\n"Ada,1\nZoë,2\n')


def test_two_rows_of_one_student_are_noted(tmp_path):
    found = rows(tmp_path, CANVAS, "lovelaceada_1234", "Ada Lovelace", "Zoë Müller")
    assert found["Ada Lovelace"] == (
        "The roster has one student for this row and for lovelaceada_1234: ask which one counts."
    )
    assert found["lovelaceada_1234"].endswith("for Ada Lovelace: ask which one counts.") and not found["Zoë Müller"]


def test_a_gradebook_for_import(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS, encoding="utf-8")
    handed = roster.with_all([Handed("lovelaceada_1234", Path("a"))], roster.read(tmp_path / "roster.csv"))
    made = {"student": "lovelaceada_1234", "status": "done", "total": 6.5, "manual": {"2.1": 1.5}}
    made["questions"] = [{"question": "1", "points": 5}, {"question": "2.1", "points": 0}]
    results = [
        made,
        *({"student": one.student, "status": "failed", "why": one.problem} for one in handed if not one.path),
    ]
    batch = Batch(demo_lab(), tmp_path, TRUSTED)
    path = batch.write_gradebook(results, {one.student: one for one in handed})
    head, *rows = path.read_text(encoding="utf-8-sig").splitlines()
    assert head == "Student,ID,SIS User ID,SIS Login ID,Section,lab9 total,lab9 1,lab9 2.1,lab9 2.2,lab9 b2.2"
    assert '"Lovelace, Ada",1234,s-1,ada1,A,6.5,5,1.5,,' in rows and '"Hopper, Grace",5,s-3,gh,B,,,,,' in rows


def test_two_folders_of_one_student_have_no_points_in_the_gradebook(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS, encoding="utf-8")
    names = ["lovelaceada_1234", "Ada Lovelace", "Zoë Müller"]
    handed = roster.with_all([Handed(name, Path("a")) for name in names], roster.read(tmp_path / "roster.csv"))
    assert roster.listed_twice(handed) == [["Ada Lovelace", "lovelaceada_1234"]]
    points = {"status": "done", "total": 5, "late_penalty": 1, "questions": [{"question": "1", "points": 5}]}
    results = [{"student": name} | points for name in names]
    path = Batch(demo_lab(), tmp_path, TRUSTED).write_gradebook(results, {one.student: one for one in handed})
    rows = [row for row in path.read_text(encoding="utf-8-sig").splitlines() if "Ada" in row or "Zo" in row]
    assert [row.endswith(",,,,,,") for row in rows] == [True, False, True] and ",5,-1,5,," in rows[1]


def test_ids_of_a_roster_come_back_as_they_are_and_what_runs_does_not(tmp_path):
    text = "Name,ID,Login\n=A,-17,@ada\n+B,=1+1,\"+1|'x'!A\"\n"
    (tmp_path / "roster.csv").write_text(text, encoding="utf-8")
    handed = {one.student: one for one in roster.with_all([], roster.read(tmp_path / "roster.csv"))}
    results = [{"student": student, "status": "failed"} for student in handed]
    path = Batch(demo_lab(), tmp_path, TRUSTED).write_gradebook(results, handed)
    rows = path.read_text(encoding="utf-8-sig").splitlines()[1:]
    assert {row.rstrip(",") for row in rows} == {"'=A,-17,@ada", "'+B,'=1+1,'+1|'x'!A"}


MOODLE = "name,id\nAda Lovelace,7\nGrace Hopper,1234567\n"


def test_a_number_of_the_platform_is_no_students(tmp_path):
    (tmp_path / "roster.csv").write_text(MOODLE, encoding="utf-8")
    named = platforms.named("A. Lovelace_1234567_assignsubmission_file_lab9.ipynb")
    handed = [Handed(named.student, Path("a"), known_as=named.known_as)]
    found = {one.student: one for one in roster.with_all(handed, roster.read(tmp_path / "roster.csv"))}
    assert found["A. Lovelace_1234567"].note == "This student is not on the roster."
    assert found["Grace Hopper"].problem == "No file was handed in." and "Ada Lovelace" in found
    assert platforms.named("12345-67890 - Ada L. - Jan 31, 2026 1159 PM").known_as == "Ada L."


def test_a_number_alone_is_a_question(tmp_path):
    text = "name,id\nAda Lovelace,2026\nRob Roy,11\n"
    found = rows(tmp_path, text, "lab9_demo_rob_2026", "lab9_demo_roy_11")
    assert found["lab9_demo_rob_2026"] == (
        "Only a number says that this is Ada Lovelace, and the name fits Rob Roy: ask whose it is."
    )
    assert found["lab9_demo_roy_11"] == ""
    for name in ("2026_final", "Countess_2026", "エイダ_2026"):
        assert rows(tmp_path, text, name)[name] == ""


def test_who_is_not_on_the_roster_has_a_name_in_the_gradebook(tmp_path):
    (tmp_path / "roster.csv").write_text(CANVAS, encoding="utf-8")
    handed = roster.with_all([Handed("stranger", Path("a"))], roster.read(tmp_path / "roster.csv"))
    results = [{"student": one.student, "status": "done", "total": 1} for one in handed]
    path = Batch(demo_lab(), tmp_path, TRUSTED).write_gradebook(results, {one.student: one for one in handed})
    assert "stranger,,,,,1,,,," in path.read_text(encoding="utf-8-sig").splitlines()
