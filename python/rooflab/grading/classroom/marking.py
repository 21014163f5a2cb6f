"""What an instructor adds to the grades of a class: points by hand for findings in prose, and who was late.

`findings.csv` lists what the students wrote, with empty columns for points and a comment. It is never written again,
because people edit it: later findings go to `findings-2.csv`. `findings.html` shows the texts question by question.
Each row says of which lab it is, so that points for one lab are none for another.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rooflab.files import replacing
from rooflab.grading.classroom import tables
from rooflab.grading.classroom.submissions import Handed, forms, suffixed
from rooflab.grading.lab.model import BY_HAND, Lab, LabError, label
from rooflab.grading.lab.printable import table_cell
from rooflab.results import page

COLUMNS = ("lab", "student", "question", "points", "comment", "finding")
NEEDED = ("student", "question", "points")
MAX_POINTS = 1000
MAX_OLDER = 1000  # characters of a finding in tables of earlier versions, which have no column lab
KEPT = "!#$%&()*+,-./:;<=>?@[]^_{|}~"  # of what is no letter and no digit
NUMBER = re.compile(r"[+]?(\d+([.]\d*|,\d\d?)?|[.]\d+)", re.ASCII)  # 1,500 may be a thousand and a half


@dataclass(frozen=True)
class Mark:
    """What an instructor gave for a question: points, a comment or both."""

    points: int | float | None = None
    comment: str = ""


Manual = dict[tuple[str, str], Mark]  # by student and the label of a question


@dataclass(frozen=True)
class Deadline:
    """When work is due, and what lateness costs: `percent` of all points for each day that has begun. Up to `grace`
    after `due` is in time.
    """

    due: datetime
    percent: float = 0.0
    grace: timedelta = timedelta()


def due_time(text: str) -> datetime:
    """A time in ISO form, in this machine's time zone if it names none.

    Examples
    --------
    >>> due_time("2026-01-31T23:59:00+01:00").timestamp()
    1769900340.0
    """
    return datetime.fromisoformat(text).astimezone() if "T" in text or " " in text else _end_of(text)


def _end_of(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T23:59:59").astimezone()


def handed_in(one: Handed) -> datetime | None:
    """When a student handed in: what a learning platform wrote into a name, else the time of the file. It is not known
    if the platform only marks who was late.
    """
    if one.time or one.late is not None or one.path is None:
        return one.time
    seconds = int(one.path.stat().st_mtime)
    return datetime.fromtimestamp(seconds).astimezone() if seconds else None


def is_late(one: Handed, deadline: Deadline) -> bool | None:
    """Whether a student was late: what a learning platform says, else whether they handed in after that, if known."""
    time = handed_in(one)
    return one.late if one.late is not None or time is None else time > deadline.due + deadline.grace


def penalty(one: Handed, deadline: Deadline, out_of: float) -> tuple[float, str]:
    """The points that lateness costs, and a sentence about it, if it costs any."""
    if not (deadline.percent and is_late(one, deadline)):
        return 0, ""
    time = handed_in(one)
    if time is None:
        return 0, "It is late, and by how many days is not known, so no points were taken off."
    days = max(1, math.ceil((time - deadline.due) / timedelta(days=1)))
    lost = round(min(days * deadline.percent, 100) * out_of / 100, 2)
    lost = int(lost) if lost.is_integer() else lost  # 2 points, not 2.0, in tables and on the page
    points = "1 point was" if lost == 1 else f"{lost:g} points were"
    return lost, f"Late by {days} {'day' if days == 1 else 'days'}: {points} taken off."


def read_manual(
    path: Path,
    lab: Lab,
    students: Iterable[str] | None = None,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Manual:
    """Points by hand from a CSV file with the columns student, question and points, and perhaps comment and lab. A row
    without points and comment is left out. If `students` are not named, all are known. Who is `renamed` may have the
    older name there.

    Raises
    ------
    LabError
        There is no such file, a column is missing, or a row has another lab, an unknown student or question, or bad
        points.
    """
    questions = {label(cell.question) for cell in lab.cells if cell.question}
    known, found = None if students is None else set(students), Manual()
    most = _of_tests_alone(lab) | stated(lab)
    sheet = tables.read(path)
    if missing := [name for name in NEEDED if name not in sheet.header]:
        raise LabError(f"{path.name} has no column {missing[0]}.")
    for line, cells in sheet.rows[1:]:
        row = {name: _plain(text) for name, text in zip(sheet.header, cells, strict=False)}
        given, comment = row.get("points", ""), row.get("comment", "")
        if not (given or comment):
            continue
        where = f"{path.name}, line {line}"
        if any(cells[len(sheet.header) :]):  # points such as 1,5 without quotes would count as 1
            raise LabError(f"{where}: there are more cells than columns. Put text with a comma into quotes.")
        if row.get("lab", "").casefold() not in ("", lab.name.casefold()):
            raise LabError(f"{where}: this row is of {row['lab'][:20]}, and {lab.name} is graded.")
        student, question = row["student"], label(row.get("question", ""))
        if known is not None and student not in known:  # a name as a roster has it, such as one with a comma
            student = next((form for form in (*forms(student), renamed.get(student)) if form in known), student)
        if known is not None and student not in known:
            alike = " or ".join(sorted(suffixed(student, known))[:3])
            rename = f": if this is {alike}, write that name there" * bool(alike)
            raise LabError(f"{where}: nobody named {student[:80]!r} handed anything in{rename}.")
        if question not in questions:
            raise LabError(f"{where}: {lab.name} has no question {question[:20]!r}.")
        if (student, question) in found:
            raise LabError(f"{where}: {student} has points for question {question} already.")
        points = _points(given, where, most.get(question, MAX_POINTS)) if given else None
        found[student, question] = Mark(points, comment)
    return found


def stated(lab: Lab) -> dict[str, int]:
    """The points that headings state, as `(10 points, by hand)` does, by the question that comes first below them."""
    found: dict[str, int] = {}
    points = 0
    for cell in lab.cells:
        if cell.role == "text" and (here := BY_HAND.findall(cell.source)):
            points = sum(map(int, here))
        elif points and cell.question:
            found[label(cell.question)], points = points, 0
    return found


def _of_tests_alone(lab: Lab) -> dict[str, int]:
    """The points of each question that has tests, no written answer, and no points by hand in its heading. Points by
    hand are part of them.
    """
    apart = {label(cell.question) for cell in lab.cells if cell.role == "prose"} | stated(lab).keys()
    tested = (one for one in lab.questions if label(one) not in apart)
    return {label(one): sum(test.points for test in lab.tests(one)) for one in tested}


def fitting(marks: Mapping[str, Mark], questions: Iterable[Mapping[str, Any]], lab: Lab) -> tuple[dict[str, Mark], str]:
    """A student's marks, without the points that a question has no room for, and a sentence about these.

    Parameters
    ----------
    marks : mapping
        Marks by question.
    questions : iterable of mapping
        Each question and its points in the tests.
    """
    earned, most = {one["question"]: one["points"] for one in questions if "points" in one}, _of_tests_alone(lab)
    found, said = dict(marks), list[str]()
    for question, mark in marks.items():
        points, tests = mark.points or 0, earned.get(question, 0)
        if points + tests > most.get(question, math.inf) and points:
            found[question] = Mark(None, mark.comment)
            what = f"Points by hand for question {question} ({points:g}) do not count"
            said.append(f"{what}: its tests gave {tests:g} of {most[question]}, and points by hand are added.")
    return found, " ".join(said)


def _plain(text: str) -> str:
    """A cell's text, without the quote that keeps a spreadsheet from running it."""
    return text.strip().removeprefix("'")


def _points(text: str, where: str, most: int) -> int | float:
    points = float(text.replace(",", ".")) if NUMBER.fullmatch(text) else math.nan
    if not 0 <= points <= most:
        raise LabError(f"{where}: points are a number from 0 to {most}, not {text[:20]!r}.")
    return int(points) if points.is_integer() else points


def out_of(result: Mapping[str, Any], lab: Lab, manual: Manual) -> dict[str, Any]:
    """What a result is out of once points by hand are given: what the headings of their questions state counts too."""
    if "out_of" not in result:
        return {}
    given = {question for (_, question), mark in manual.items() if mark.points is not None}
    by_hand = sum(points for question, points in stated(lab).items() if question in given)
    tests = result["out_of"] - result.get("manual_out_of", 0)  # of an earlier run
    return {"out_of": tests + by_hand, "manual_out_of": by_hand}


def merged(result: Mapping[str, Any], manual: Manual) -> dict[str, Any]:
    """A student's result with the points by hand, and the total with them and without what lateness costs."""
    ours = of(manual, result["student"])
    points = {question: mark.points for question, mark in ours.items() if mark.points is not None}
    comments = {question: mark.comment for question, mark in ours.items() if mark.comment}
    more: dict[str, Any] = {"manual": points, "manual_points": sum(points.values()), "comments": comments}
    more["comment"] = "; ".join(f"{question}: {text}" for question, text in comments.items())
    if "points" in result:
        whole = result["points"] + more["manual_points"]
        more["total"] = max(0, round(whole - result["late_penalty"], 2)) if result.get("late_penalty") else whole
    return {**result, **more}


def of(manual: Manual, student: str) -> dict[str, Mark]:
    """A student's marks by question."""
    return {question: mark for (whose, question), mark in manual.items() if whose == student}


def write_findings(folder: Path, lab: Lab, results: Iterable[Mapping[str, Any]]) -> list[Path]:
    """Write `findings.html`, and to a new CSV file the findings that are in no older one, because people edit these."""
    results = sorted(results, key=lambda result: result["student"])
    found = [(one["student"], question, text) for one in results for question, text in one.get("findings", {}).items()]
    if not found:
        return []
    known = {row for path in sorted(folder.glob("findings*.csv")) for row in _findings(path, lab)}
    rows = [
        [lab.name, table_cell(student), question, "", "", table_cell(text, lines=True)]
        for student, question, text in found
        if known.isdisjoint(_listed(lab, student, question, text))
    ]
    number, table = 2, folder / "findings.csv"
    while table.exists():
        table, number = folder / f"findings-{number}.csv", number + 1
    if rows:
        with tables.writing(table) as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    shown = folder / "findings.html"
    with replacing(shown) as unfinished:
        unfinished.write_text(_page(lab, found), encoding="utf-8", errors="replace")
    return [*[table] * bool(rows), shown]


def _findings(path: Path, lab: Lab) -> Iterator[tuple[str, bool]]:
    """The findings of a table, which a spreadsheet may have changed, and whether each may be cut: one without a column
    `lab` is of an earlier version, and of the lab whose results lie beside it.
    """
    sheet = tables.read_edited(path)
    for row in [dict(zip(sheet.header, cells, strict=False)) for _, cells in sheet.rows[1:]] if sheet else ():
        of, text = (row.get("lab") or lab.name).casefold(), row.get("finding", "")
        yield _signs(of, row.get("student"), row.get("question"), text), "lab" not in row and len(text) >= MAX_OLDER


def _listed(lab: Lab, student: str, question: str, text: str) -> set[tuple[str, bool]]:
    """How a finding may stand in a table already."""
    whole, cut = (
        _signs(lab.name.casefold(), table_cell(student), question, table_cell(one, lines=True))
        for one in (text, text[:MAX_OLDER])
    )
    return {(whole, False), (whole, True), (cut, True)}


def _signs(*texts: object) -> str:
    """Texts without what a spreadsheet changes: spaces, ends of lines, quotes, and letters of another encoding."""
    return " ".join("".join(c for c in str(text) if c.isalnum() or c in KEPT) for text in texts)


def _page(lab: Lab, found: list[tuple[str, str, str]]) -> str:
    questions = dict.fromkeys(label(cell.question) for cell in lab.cells if cell.role == "prose")
    answers = {
        asked: [(student, text) for student, question, text in found if question == asked] for asked in questions
    }
    return page("rooflab.grading.classroom.pages", "findings.html", title=lab.title, questions=answers)
