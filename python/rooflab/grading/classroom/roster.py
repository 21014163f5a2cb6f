"""Who is in the class: a list of students, so that nobody who handed in nothing is missing from the grades.

A list is a CSV file of Canvas (its gradebook) or of a student information system, or has one name a line. A student is
found by the name in either order, by the login or the e-mail address, or by one of the numbers. The number that Moodle
or Brightspace adds to a name is on no list.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rooflab.grading.classroom import tables
from rooflab.grading.classroom.submissions import Handed, safe_names, some
from rooflab.grading.lab.model import LabError
from rooflab.grading.lab.printable import printable

NAMES = ("student", "student name", "name", "full name", "full_name", "sortable_name", "sortable name", "display name")
FIRST = ("first name", "first_name", "firstname", "given name", "given_name", "forename", "vorname")
LAST = ("last name", "last_name", "lastname", "surname", "family name", "family_name", "nachname")
IDS = """id|user_id|user id|sis user id|sis login id|login_id|login|username|integration id|student id|student_id|sid
id number|orgdefinedid|email|email address|e-mail"""
ID_COLUMNS = re.split(r"[|\n]", IDS)
NOT_STUDENTS = ("points possible", "student, test", "test student")  # rows of Canvas
NOTHING = "No file was handed in."


@dataclass(frozen=True)
class Person:
    """A student of the list: the name as it is shown, and all forms of names and numbers that a file may have."""

    name: str
    names: frozenset[str]
    ids: frozenset[str]
    columns: tuple[tuple[str, str], ...] = ()


def read(path: Path) -> list[Person]:
    """The students of a list.

    Raises
    ------
    LabError
        There is no such file, nobody in it, or a table whose columns are not known.
    """
    sheet = tables.read(path)
    rows, header = [row for _, row in sheet.rows], sheet.header
    if set(header) & {*NAMES, *FIRST, *LAST, *ID_COLUMNS}:
        people = [_person(dict(zip(header, row, strict=False)), rows[0]) for row in rows[1:]]
    elif _is_table(rows, sheet.between):
        begins = printable(", ".join(rows[0]))[:80]
        raise LabError(
            f"{path.name} is a table that begins with the line {begins!r}, and none of these is known as a column that "
            "names students: call one Student, Name or Email."
        )
    else:
        people = [_person({"name": line}, ["name"]) for line in sheet.text.splitlines()]
    # Two rows with one number are one student. Two with one name and no number may be two.
    found = list({(one.name, one.ids or row): one for row, one in enumerate(people) if one}.values())
    if not found:
        raise LabError(f"{path.name} names no student: it needs a column such as Student or Name, or one name a line.")
    return found


def _is_table(rows: list[list[str]], between: str) -> bool:
    """Whether this is no list with one name a line, in which a comma stands before a first name."""
    beside = [cell for row in rows if len(row) == 2 for cell in row]
    is_wide = bool(rows) and len(rows[0]) > (2 if between == "," else 1)
    return is_wide or any(re.search(r"[\d@]", cell) for cell in beside)


def with_all(handed: list[Handed], people: Iterable[Person]) -> list[Handed]:
    """What was handed in, with a row for each student of the list without a file, and a note at who is not on it or
    is there twice.
    """
    people, whose = list(people), dict[str, list[Person]]()
    for one in handed:
        whose[one.student] = _fitting(one.known_as or one.student, people)
    there = {person for found in whose.values() if len(found) == 1 for person in found}
    handed = [replace(one, listed=found[0].columns) if len(found := whose[one.student]) == 1 else one for one in handed]
    times = Counter(part for one in handed for part in set(_parts(one.known_as or one.student)))
    noted = [_noted(one, _odd(one, whose, times, people)) for one in handed]
    missing = [person for person in people if person not in there]
    marks = (f"{person.name} {person.columns}" for person in missing)
    names = safe_names((person.name for person in missing), marks, [one.student for one in handed])
    for name, person in zip(names, missing, strict=True):
        perhaps = sorted(student for student, found in whose.items() if len(found) > 1 and person in found)
        why = (
            f"{NOTHING[:-1]} that is surely theirs: {', '.join(perhaps)} fits several students." if perhaps else NOTHING
        )
        noted.append(Handed(name, None, why, listed=person.columns))
    return sorted(noted, key=lambda one: one.student)


def listed_twice(handed: Iterable[Handed]) -> list[list[str]]:
    """Names that a roster has as one student, where more than one handed something in."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for one in handed:
        if one.listed and one.path:
            found.setdefault(one.listed, []).append(one.student)
    return [sorted(names) for names in found.values() if len(names) > 1]


def _odd(one: Handed, whose: dict[str, list[Person]], times: Mapping[str, int], people: list[Person]) -> str:
    """What an instructor should know of a name beside the roster, or nothing. `times` counts the parts of all names."""
    student = one.student
    if not whose[student]:
        return "This student is not on the roster."
    if len(whose[student]) > 1:
        return f"This row fits several students of the roster: {'; '.join(one.name for one in whose[student])}."
    person, parts = whose[student][0], _parts(one.known_as or student)
    own = [form for part in parts if times[part] == 1 and (form := _plain(part)) and not form.isdecimal()]
    if not any(form in name or name in form for form in own for name in person.names | person.ids):
        fits = [other.name for other in people if not _words(other).isdisjoint(own)]
        if fits:
            return f"Only a number says that this is {person.name}, and the name fits {some(fits)}: ask whose it is."
    others = [
        other for other in whose if other != student and len(whose[other]) == 1 and whose[other] == whose[student]
    ]
    return f"The roster has one student for this row and for {', '.join(others)}: ask which one counts." * bool(others)


def _words(person: Person) -> set[str]:
    """What a name in a file may be of a person's: the whole name, a part of it, or a login."""
    return {_plain(word) for word in re.findall(r"[^\s,]+", person.name)} | person.names | person.ids


def _noted(one: Handed, more: str) -> Handed:
    if one.path is None:
        return replace(one, problem=f"{one.problem} {more}".strip())
    return replace(one, note=f"{one.note} {more}".strip())


def _fitting(student: str, people: list[Person]) -> list[Person]:
    """Who of the list a file is named after: by the name if it is one student's, else by a number or a login."""
    forms = {_plain(part) for part in (student, *_parts(student))} - {""}
    named = [person for person in people if person.names & forms]
    numbered = [person for person in people if person.ids & forms]
    if len(named) == 1:
        return named
    both = [person for person in named if person in numbered]
    return both if len(both) == 1 else numbered if len(numbered) == 1 else named or numbered


def _parts(student: str) -> list[str]:
    """What a file's name consists of. A single digit counts copies, attempts or labs."""
    parts = re.split(r"_| (?=\d[\d-]*$)", student)
    return [part for part in parts if not re.fullmatch(r"\d", part)]


def _person(row: dict[str, str], header: list[str]) -> Person | None:
    cells = {name: (value or "").strip().removeprefix("'") for name, value in row.items()}
    if cells.get("role", "student").casefold() not in ("", "student", "learner"):
        return None
    if cells.get("status", "").casefold() in ("deleted", "inactive"):
        return None
    first, last = (next((cells[name] for name in of if cells.get(name)), "") for of in (FIRST, LAST))
    shown = [cells[name] for name in NAMES if cells.get(name)] + [f"{first} {last}".strip()] * bool(first or last)
    ids = [cells[name] for name in ID_COLUMNS if cells.get(name)]
    if not (shown or ids) or (shown and shown[0].casefold() in NOT_STUDENTS):
        return None
    words = [re.findall(r"[^\s,]+", name) for name in shown]
    names = {
        _plain("".join(of[at:] + of[:at])) for of in words for at in range(len(of))
    }  # the last name may come first
    plain = {_plain(one) for one in ids} | {_plain(one.split("@")[0]) for one in ids}
    kept = [
        name.strip() for name in header if name.strip().casefold() in {*NAMES, *FIRST, *LAST, *ID_COLUMNS, "section"}
    ]
    columns = tuple((name, row.get(name.casefold(), "").strip()) for name in kept)
    return Person((shown or ids)[0], frozenset(names - {""}), frozenset(plain - {""}), columns)


def _plain(text: str) -> str:
    """Letters and digits alone, small and without accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if letter.isalnum())
