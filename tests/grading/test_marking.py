"""Points by hand, who was late, and the table of findings."""

import os
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from grading.demo_lab import demo_lab

from rooflab.grading.classroom import archives, marking, report
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.marking import Deadline, Mark
from rooflab.grading.classroom.submissions import Handed, collect, safe_names
from rooflab.grading.lab import release
from rooflab.grading.lab.model import LabError

LAB = demo_lab()


@pytest.mark.parametrize(
    "text, iso",
    [
        ("2026-01-31T23:59:00+02:00", "2026-01-31T21:59:00"),
        ("2026-01-31 23:59+00:00", "2026-01-31T23:59:00"),
        ("2026-01-31T23:59:00Z", "2026-01-31T23:59:00"),
    ],
)
def test_a_due_time(text, iso):
    assert marking.due_time(text) == datetime.fromisoformat(iso).replace(tzinfo=UTC)


def test_a_due_time_without_a_zone_is_of_this_machine():
    assert marking.due_time("2026-01-31T12:00") == datetime(2026, 1, 31, 12).astimezone()
    assert marking.due_time("2026-01-31") == datetime(2026, 1, 31, 23, 59, 59).astimezone(), "the whole day"
    for text in ("tomorrow", "", "2026-13-01", "12:00"):
        with pytest.raises(ValueError):
            marking.due_time(text)


@pytest.mark.parametrize(
    "name, seconds, late",
    [
        ("ada.ipynb", 1000, False),
        ("ada.ipynb", 1001, True),
        ("ada_LATE_123_456_lab1.ipynb", 1, True),
        ("ada_later.ipynb", 1, False),
        ("ada_123_456_my_LATE_work.ipynb", 5000, False),
        ("lab1_ada_attempt_2026-99-03-00-00-00_lab1.ipynb", 1, False),
        ("lab1_ada_attempt_1970-01-03-00-00-00_lab1.ipynb", 0, True),
        ("lab1_ada_attempt_1969-12-30-00-00-00_lab1.ipynb", 5000, False),
    ],
)
def test_late_by_the_files_time_or_by_its_name(tmp_path, name, seconds, late):
    path = tmp_path / name
    path.write_text(release.dumps(release.build(LAB)), encoding="utf-8")
    os.utime(path, (seconds, seconds))
    (one,) = collect(tmp_path, LAB)
    assert marking.is_late(one, Deadline(datetime.fromtimestamp(1000, UTC))) is late


DUE = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "hours, percent, lost, said",
    [
        (0, 10, 0, ""),
        (0.2, 10, 0, ""),
        (0.3, 10, 1.2, "Late by 1 day: 1.2 points were taken off."),
        (24, 10, 1.2, "Late by 1 day: 1.2 points were taken off."),
        (24.1, 10, 2.4, "Late by 2 days: 2.4 points were taken off."),
        (24 * 30, 10, 12, "Late by 30 days: 12 points were taken off."),
        (24.1, 0, 0, ""),
    ],
)
def test_each_day_that_has_begun_costs_a_percentage_after_the_grace(hours, percent, lost, said):
    one = Handed("ada", None, time=DUE + timedelta(hours=hours))
    deadline = Deadline(DUE, percent, timedelta(minutes=15))
    assert marking.penalty(one, deadline, out_of=12) == (lost, said)


def test_whole_points_that_lateness_costs_are_whole_numbers():
    late = marking.penalty(Handed("ada", None, time=DUE + timedelta(hours=3)), Deadline(DUE, 10), out_of=10)
    assert repr(late) == "(1, 'Late by 1 day: 1 point was taken off.')"


def test_a_mark_without_a_time_costs_nothing_and_says_so():
    lost, said = marking.penalty(Handed("ada", None, late=True), Deadline(DUE, 10), 12)
    assert lost == 0 and said == "It is late, and by how many days is not known, so no points were taken off."
    assert marking.penalty(Handed("ada", None, late=False), Deadline(DUE, 10), 12) == (0, "")


def test_a_penalty_leaves_no_less_than_nothing():
    result = {"student": "ada", "points": 3, "late_penalty": 4.8}
    assert marking.merged(result, {("ada", "1"): Mark(2)})["total"] == pytest.approx(0.2)
    assert marking.merged(result, {})["total"] == 0


def test_a_zip_has_its_own_times(tmp_path):
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("ada.ipynb", (2020, 5, 17, 8, 30, 10)), "{}")
    archives.unpacked(tmp_path / "class.zip", tmp_path / "out")
    assert (
        marking.handed_in(Handed("ada", tmp_path / "out" / "ada.ipynb"))
        == datetime(2020, 5, 17, 8, 30, 10).astimezone()
    )


def manual(tmp_path, text):
    (tmp_path / "points.csv").write_text(text, encoding="utf-8")
    return marking.read_manual(tmp_path / "points.csv", LAB, ["ada", "bob", "+x"])


def test_points_by_hand(tmp_path):
    rows = 'ada,2.1,2,"a\nb",,', 'bob,q2_1," 1,5",', "ada,b2.2,0,", "bob,1,,", "'+x,1,3,"
    text = "\n".join(["\ufeffstudent,question,points,finding", *rows])
    assert manual(tmp_path, text) == {
        ("ada", "2.1"): Mark(2), ("bob", "2.1"): Mark(1.5), ("ada", "b2.2"): Mark(0), ("+x", "1"): Mark(3),
    }  # fmt: skip
    for text in (
        "student,question,points,comment\nada,1,,Well done\n",
        "student;question;points;comment\nada;1;;Well done",
    ):
        assert manual(tmp_path, text) == {("ada", "1"): Mark(None, "Well done")}


@pytest.mark.parametrize(
    "row, why",
    [
        ("carl,1,2", "points.csv, line 2: nobody named 'carl' handed anything in."),
        ("ada,7,2", "points.csv, line 2: lab9 has no question '7'."),
        ("ada,1,many", "points.csv, line 2: points are a number from 0 to 5, not 'many'."),
        ("ada,1,6", "points.csv, line 2: points are a number from 0 to 5, not '6'."),
        ("ada,2.1,1001", "points.csv, line 2: points are a number from 0 to 1000, not '1001'."),
        ("ada,1,-1", "not '-1'."),
        ("ada,1,nan", "not 'nan'."),
        ("ada,1,inf", "not 'inf'."),
        ('ada,1,"1,500"', "not '1,500'."),
        ("ada,1,1_0", "not '1_0'."),
        ("ada,1,1,5", "line 2: there are more cells than columns. Put text with a comma into quotes."),
        ('ada,1,"1\nbob,1,2', "cannot be read as a table: unexpected end of data. Look at its quotes."),
        ("ada,1,1\nada,q1,2", "points.csv, line 3: ada has points for question 1 already."),
    ],
)
def test_a_row_that_cannot_be_used(tmp_path, row, why):
    with pytest.raises(LabError) as error:
        manual(tmp_path, f"student,question,points\n{row}\n")
    assert str(error.value).endswith(why)


def test_a_file_that_cannot_be_used(tmp_path):
    with pytest.raises(LabError, match=r"^points.csv has no column question\.$"):
        manual(tmp_path, "student,points\nada,1\n")
    (tmp_path / "latin.csv").write_bytes("student,question,points\nä,1,1\n".encode("latin-1"))
    with pytest.raises(LabError, match=r"^latin.csv is no text in UTF-8"):
        marking.read_manual(tmp_path / "latin.csv", LAB, [])
    with pytest.raises(LabError, match=r"^absent.csv cannot be read: No such file"):
        marking.read_manual(tmp_path / "absent.csv", LAB, [])


def test_a_result_without_a_grade_has_no_total():
    points = {("ada", "1"): Mark(2), ("ada", "2.1"): Mark(None, "why?"), ("bob", "1"): Mark(5)}
    merged = marking.merged({"student": "ada"}, points)
    assert (merged["manual"], merged["manual_points"], merged["comments"]) == ({"1": 2}, 2, {"2.1": "why?"})
    assert merged["comment"] == "2.1: why?" and "total" not in merged
    assert marking.merged({"student": "ada", "points": 3}, points)["total"] == 5


@pytest.mark.parametrize(
    "head", ["sep=;\nstudent;question;points\n", "\n\nstudent;question;points\n", "Student;QUESTION;Points \n"]
)
def test_points_by_hand_as_spreadsheets_and_people_write_them(tmp_path, head):
    assert manual(tmp_path, f"{head}ada;1;2,5\n") == {("ada", "1"): Mark(2.5)}
    with pytest.raises(LabError, match=rf"line {1 + head.count(chr(10))}: nobody named 'eve'"):
        manual(tmp_path, f"{head}eve;1;2\n")


def test_points_for_another_lab_are_refused(tmp_path):
    assert manual(tmp_path, "lab,student,question,points\nlab9,ada,1,2\n,bob,1,3\n") == {
        ("ada", "1"): Mark(2), ("bob", "1"): Mark(3),
    }  # fmt: skip
    with pytest.raises(LabError, match=r"^points.csv, line 2: this row is of lab2, and lab9 is graded\.$"):
        manual(tmp_path, "lab,student,question,points\nlab2,ada,1,2\n")


def stated(points):
    """The demo lab with points by hand for question 2.1."""
    cells = (
        replace(cell, source=f"## Question 2.1 ({points} points, by hand)") if "Question 2.1" in cell.source else cell
        for cell in LAB.cells
    )
    return replace(LAB, cells=tuple(cells))


def test_points_by_hand_that_a_heading_states_are_part_of_the_whole(tmp_path):
    lab = stated(8)
    assert marking.stated(lab) == {"2.1": 8} and lab.by_hand == 8
    result = {"student": "ada", "points": 10, "out_of": 12}
    given = {("bob", "2.1"): Mark(6)}  # who has none has lost them
    whole = result | marking.out_of(result, lab, given)
    assert (whole["out_of"], whole["manual_out_of"]) == (20, 8)
    assert marking.out_of(whole, lab, given)["out_of"] == 20, "a second run counts them once"
    assert marking.out_of(whole, lab, {("bob", "1"): Mark(1)}) == {"out_of": 12, "manual_out_of": 0}
    said = report.points(marking.merged(whole, {("ada", "2.1"): Mark(7)}))
    assert said == "17 of 20 points (10 of 12 in the tests, 7 of 8 by hand)"
    (tmp_path / "points.csv").write_text("student,question,points\nada,2.1,9\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"points are a number from 0 to 8, not '9'"):
        marking.read_manual(tmp_path / "points.csv", lab)


def test_points_by_hand_do_not_exceed_those_of_a_question_of_tests_alone():
    questions = [{"question": "1", "points": 2}, {"question": "2.1", "points": 3}, {"question": "b2.2"}]
    marks = {"1": Mark(3), "2.1": Mark(9), "b2.2": Mark(3)}
    assert marking.fitting(marks, questions, LAB) == (marks, ""), "2.1 has a written answer too"
    kept, said = marking.fitting({"1": Mark(3.5, "Why?"), "2.1": Mark(9)}, questions, LAB)
    assert kept == {"1": Mark(None, "Why?"), "2.1": Mark(9)}
    assert said == (
        "Points by hand for question 1 (3.5) do not count: its tests gave 2 of 5, and points by hand are added."
    )
    assert marking.fitting({"1": Mark(0)}, [{"question": "1", "points": 5}], LAB)[1] == ""


def test_points_by_hand_that_do_not_count_are_in_no_total_and_said(tmp_path):
    result = {
        "student": "ada",
        "status": "done",
        "points": 5,
        "out_of": 12,
        "questions": [{"question": "1", "points": 5}],
    }
    manual = {("ada", "1"): Mark(5), ("bob", "1"): Mark(5)}
    whole = Batch(LAB, tmp_path, trusted=True).complete(result, Handed("ada", None), None, manual)
    assert (whole["total"], whole["manual_points"]) == (5, 0) and whole["why"].startswith(
        "Points by hand for question 1 (5)"
    )


def test_without_findings_nothing_is_written(tmp_path):
    assert marking.write_findings(tmp_path, LAB, [{"student": "ada", "findings": {}}]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_students_text_is_text_in_the_table_and_on_the_page(tmp_path):
    results = [{"student": "bob", "findings": {"2.1": "=1+1\n<script>"}}, {"student": "ada", "findings": {"2.1": "x"}}]
    paths = marking.write_findings(tmp_path, LAB, results)
    table, page = (path.read_text(encoding="utf-8") for path in paths)
    rows = [
        "\ufefflab,student,question,points,comment,finding",
        "lab9,ada,2.1,,,x",
        'lab9,bob,2.1,,,"\'=1+1\n<script>"',
    ]
    assert table == "\n".join(rows) + "\n"
    assert "&lt;script&gt;" in page and "<script>" not in page and page.index("ada") < page.index("bob")


EDITED = {
    "as it was": lambda text: text,
    "filled in": lambda text: text.replace(",ada,2.1,,", ",ada,2.1,2,Good"),
    "with more columns": lambda text: "\n".join(line + ",mine" for line in text.splitlines()),
    "by a German spreadsheet": lambda text: "sep=;\r\n" + text[1:].replace(",", ";").replace("\n", "\r\n"),
    "empty": lambda text: "",
    "in another encoding": lambda text: text.replace("Because", "Because \udcff"),
}


@pytest.mark.parametrize("edit", EDITED)
def test_what_people_edit_is_not_written_again(tmp_path, edit):
    results = [{"student": "ada", "findings": {"2.1": "Because."}}]
    (table, _) = marking.write_findings(tmp_path, LAB, results)
    content = EDITED[edit](table.read_text(encoding="utf-8")).encode("utf-8", "surrogateescape")
    table.write_bytes(content)
    results.append({"student": "bob", "findings": {"2.1": "So, it is."}})
    (more, _) = marking.write_findings(tmp_path, LAB, results)
    assert table.read_bytes() == content and more.name == "findings-2.csv"
    assert "bob,2.1,,," in more.read_text(encoding="utf-8")
    assert [path.name for path in marking.write_findings(tmp_path, LAB, results)] == ["findings.html"]


def test_a_changed_finding_is_a_new_row(tmp_path):
    for number, text in enumerate(("One.", "Two.")):
        (table, _) = marking.write_findings(tmp_path, LAB, [{"student": "ada", "findings": {"2.1": text}}])
        assert table.name == ("findings.csv", "findings-2.csv")[number] and text in table.read_text(encoding="utf-8")


@pytest.mark.parametrize("lengths", [(5_000, 5_001), (40_000, 40_001)])
def test_a_long_finding_is_whole_or_says_that_it_is_cut(tmp_path, lengths):
    for number, length in enumerate(lengths, 1):
        text = "a" * (length - 1) + str(number)
        (table, page) = marking.write_findings(tmp_path, LAB, [{"student": "ada", "findings": {"2.1": text}}])
        shown = table.read_text(encoding="utf-8")
        assert (text in shown) != (f"[{length - 30_000} more characters, " in shown)
        assert text in page.read_text(encoding="utf-8")
    marking.read_manual(table, LAB)


def test_signs_tell_findings_apart_and_so_does_the_lab(tmp_path):
    for number, text in enumerate(("x < -1.5", "x > -1.5", "x > 15"), 1):
        marking.write_findings(tmp_path, LAB, [{"student": "ada", "findings": {"2.1": text}}])
        assert len(list(tmp_path.glob("*.csv"))) == number
    marking.write_findings(tmp_path, replace(LAB, name="lab8"), [{"student": "ada", "findings": {"2.1": "x > 15"}}])
    assert "lab8,ada,2.1" in (tmp_path / "findings-4.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("length", [9, 999, 1000, 5000])
def test_findings_of_an_earlier_version_are_not_listed_again(tmp_path, length):
    text = "=" + "a\n" * length
    row = f'student,question,points,comment,finding\nada,2.1,2,,"\'{text[:1000]}"\n'
    (tmp_path / "findings.csv").write_text(row, encoding="utf-8")
    results = [{"student": "ada", "findings": {"2.1": text}}]
    assert [path.name for path in marking.write_findings(tmp_path, LAB, results)] == ["findings.html"]
    results = [{"student": "ada", "findings": {"2.1": text[:5] + "b" + text[5:]}}]
    assert marking.write_findings(tmp_path, LAB, results)[0].name == "findings-2.csv"
    assert marking.read_manual(tmp_path / "findings.csv", LAB) == {("ada", "2.1"): Mark(2)}


@pytest.mark.parametrize("given, points", [("5.", 5), ("+5", 5), ("'+2.5", 2.5), ("+.5", 0.5)])
def test_points_and_labs_as_people_write_them(tmp_path, given, points):
    assert manual(tmp_path, f"lab,student,question,points\nLab9,ada,1,{given}\n") == {("ada", "1"): Mark(points)}


def test_what_was_given_by_hand_is_on_the_page(tmp_path):
    path = tmp_path / "ada.html"
    path.write_text("<p>1</p><!-- by hand --><!-- end by hand --><p><!-- by hand --></p>", encoding="utf-8")
    result = {"notebook": "ada.ipynb", "points": 3, "out_of": 12, "pending": 0, "isolated": True}
    report.add_by_hand(path, result, {"2.1": Mark(1.5, "<b>Good</b>"), "1": Mark(None, "Why?")})
    shown = path.read_text(encoding="utf-8")
    assert "2.1: 1.5 points" in shown and "&lt;b&gt;Good" in shown and "Why?" in shown
    report.add_by_hand(path, result, {"2.1": Mark(1)})
    assert "2.1: 1 point<" in (shown := path.read_text(encoding="utf-8")) and "Good" not in shown
    report.add_by_hand(path, result | {"late_penalty": 1.2, "total": 1.8}, {})
    leads = "1.8 of 12 points (3 in the tests, 1.2 taken off because it was late)"
    assert f"<!-- by hand --><p>ada.ipynb: <b>{leads}</b></p>" in path.read_text(encoding="utf-8")
    report.add_by_hand(path, result, {})
    assert "taken off" not in path.read_text(encoding="utf-8")
    assert "2.1" not in path.read_text(encoding="utf-8") and path.read_text(encoding="utf-8").endswith(
        "<!-- by hand --></p>"
    )


def test_points_by_hand_of_alike_names(tmp_path):
    names = safe_names(["Ana [A]", "Ana (A)"])
    path = tmp_path / "by_hand.csv"
    path.write_text("student,question,points\nAna (A),1,2\n", encoding="utf-8")
    assert marking.read_manual(path, LAB, names) == {(names[1], "1"): Mark(2)}
    path.write_text("student,question,points\nAna _A_,1,2\n", encoding="utf-8")  # whoever was called so before
    why = f"nobody named 'Ana _A_' handed anything in: if this is {' or '.join(sorted(names))}, write that name there."
    with pytest.raises(LabError, match=why):
        marking.read_manual(path, LAB, names)
    assert marking.read_manual(path, LAB, names, {"Ana _A_": names[0]}) == {(names[0], "1"): Mark(2)}
    path.write_text("student,question,points\nAda,1,2\n", encoding="utf-8")
    names = safe_names(["ada", "Ada"])
    assert marking.read_manual(path, LAB, names) == {(names[1], "1"): Mark(2)}


def test_points_by_hand_take_a_name_as_the_roster_writes_it(tmp_path):
    path = tmp_path / "by_hand.csv"
    path.write_text('student,question,points\n"Müller, Jörg",1,2\n', encoding="utf-8")
    assert marking.read_manual(path, LAB, ["Müller_ Jörg"]) == {("Müller_ Jörg", "1"): marking.Mark(2)}
