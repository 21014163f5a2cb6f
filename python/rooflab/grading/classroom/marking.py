"""What an instructor adds to the grades of a class: points by hand for findings in prose, and who was late.

`findings.csv` lists what the students wrote, with an empty column for points. Once it is filled in, it is read again
for the points by hand. `findings.html` shows the same texts for reading, question by question.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rooflab.files import replacing
from rooflab.grading.classroom.pages import page
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.lab.model import Lab, LabError, label
from rooflab.grading.lab.printable import table_cell

COLUMNS = ("student", "question", "points", "finding")
MAX_POINTS = 1000

Manual = dict[tuple[str, str], int | float]  # by student and the label of a question


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


def is_late(one: Handed, due: datetime) -> bool | None:
    """Whether a student was late: what a learning platform says, else whether they handed in after `due`, if known."""
    time = handed_in(one)
    return one.late if one.late is not None or time is None else time > due


def read_manual(path: Path, lab: Lab, students: Iterable[str]) -> Manual:
    """Points by hand from a CSV file with the columns student, question and points. A row without points is left out.

    Raises
    ------
    LabError
        There is no such file, a column is missing, or a row has an unknown student or question, or bad points.
    """
    questions = {label(cell.question) for cell in lab.cells if cell.question}
    known, found = set(students), Manual()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if missing := [name for name in COLUMNS[:3] if name not in (rows.fieldnames or ())]:
                raise LabError(f"{path.name} has no column {missing[0]}.")
            for row in rows:
                if not (row["points"] or "").strip():
                    continue
                where = f"{path.name}, line {rows.line_num}"
                student, question = (_plain(row[name]) for name in COLUMNS[:2])
                question = label(question)
                if student not in known:
                    raise LabError(f"{where}: nobody named {student[:80]!r} handed anything in.")
                if question not in questions:
                    raise LabError(f"{where}: {lab.name} has no question {question[:20]!r}.")
                if (student, question) in found:
                    raise LabError(f"{where}: {student} has points for question {question} already.")
                found[student, question] = _points(row["points"], where)
    except (UnicodeDecodeError, csv.Error) as error:
        raise LabError(f"{path.name} is not a table in UTF-8: {error}.") from None
    except OSError as error:
        raise LabError(f"{path.name} cannot be read: {error.strerror}.") from None
    return found


def _plain(text: str | None) -> str:
    """A cell's text, without the quote that keeps a spreadsheet from running it."""
    return (text or "").strip().removeprefix("'")


def _points(text: str, where: str) -> int | float:
    try:
        points = float(text.strip().replace(",", "."))
    except ValueError:
        points = math.nan
    if not 0 <= points <= MAX_POINTS:
        raise LabError(f"{where}: points are a number from 0 to {MAX_POINTS}, not {text[:20]!r}.")
    return int(points) if points.is_integer() else points


def merged(result: Mapping[str, Any], manual: Manual) -> dict[str, Any]:
    """A student's result with the points by hand, and the total with them."""
    ours = {question: points for (student, question), points in manual.items() if student == result["student"]}
    more: dict[str, Any] = {"manual": ours, "manual_points": sum(ours.values())}
    if "points" in result:
        more["total"] = result["points"] + more["manual_points"]
    return {**result, **more}


def write_findings(folder: Path, lab: Lab, results: Iterable[Mapping[str, Any]], manual: Manual) -> list[Path]:
    """Write `findings.csv` and `findings.html`. Points from an older `findings.csv` are kept."""
    table, shown = folder / "findings.csv", folder / "findings.html"
    results = sorted(results, key=lambda result: result["student"])
    found = [(one["student"], question, text) for one in results for question, text in one.get("findings", {}).items()]
    if not found:
        return []
    before = read_manual(table, lab, (one["student"] for one in results)) if table.exists() else Manual()
    points = before | manual
    with replacing(table) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for student, question, text in found:
            given = points.get((student, question), "")
            rows.writerow([table_cell(student), question, given, table_cell(text, lines=True)])
    with replacing(shown) as unfinished:
        unfinished.write_text(_page(lab, found), encoding="utf-8", errors="replace")
    return [table, shown]


def _page(lab: Lab, found: list[tuple[str, str, str]]) -> str:
    questions = dict.fromkeys(label(cell.question) for cell in lab.cells if cell.role == "prose")
    answers = {
        asked: [(student, text) for student, question, text in found if question == asked] for asked in questions
    }
    return page("findings.html", title=lab.title, questions=answers)
