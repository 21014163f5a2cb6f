"""How learning platforms name what they export: whose file it is, and when it was handed in.

    Canvas       lovelaceada_LATE_1234_56789_lab1.ipynb, anon_k3dQz_56789_lab1.ipynb
    Moodle       Ada Lovelace_1234567_assignsubmission_file_/lab1.ipynb, or as one name where folders are turned off;
                 text that was typed in lies in ..._assignsubmission_onlinetext_
    Blackboard   Lab 1_alovelace_attempt_2026-01-31-23-59-00_lab1.ipynb
    Brightspace  12345-67890 - Ada Lovelace - Jan 31, 2026 1159 PM/lab1.ipynb, or as one name
    Gradescope   submission_123456/lab1.ipynb, and submission_metadata.yml beside these folders says who that is

Blackboard and Brightspace export every attempt of a student, the other two only the last one. In Canvas's zip each
entry has the time of the export, so its mark `_LATE_` alone says who was late.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from rooflab.grading.lab.errors import LabError

CANVAS = re.compile(r"(?P<who>anon_[^_]+|[^_]+)(?P<late>_LATE)?(?P<user>_\d+)?_\d+_(?P<rest>.+)", re.DOTALL)
NOT_CANVAS = re.compile(r"[^_]*\d[^_]*_\d")  # lab1_2026_01_gemm.ipynb is a student's own name for it
MOODLE = re.compile(r"(?P<who>(?P<name>.+?)_\d+)_assignsubmission_[a-z]+(?P<rest>_.*)?", re.DOTALL)
BLACKBOARD = re.compile(r"(?P<who>.+?)_attempt_(?P<time>\d{4}(-\d\d){5})(?P<rest>_.*)?", re.DOTALL)
BRIGHTSPACE = re.compile(
    r"(?P<id>\d+-\d+) - (?P<who>.+?) ?- (?P<day>[A-Z][a-z]{2} \d\d?, \d{4}) (?P<clock>\d{3,4} [AP]M)(?P<rest> - .*)?",
    re.DOTALL,
)
GRADESCOPE = "submission_metadata.yml"
PLATFORMS = (MOODLE, BLACKBOARD, BRIGHTSPACE, CANVAS)


@dataclass(frozen=True)
class Named:
    """What the name of a file or a folder says: the student, the time if it holds one, and whether they were late if it
    always says so. `known_as` is the name without a number that is the platform's own and no student's.

    With `has_assignment`, `student` begins with the name of the assignment and a `_`.
    """

    student: str
    time: datetime | None = None
    late: bool | None = None
    has_assignment: bool = False
    known_as: str = ""


def named(name: str) -> Named | None:
    """What a platform's name for a file or a folder says, or None for any other name. What stands first in it counts,
    because a student chooses what follows.

    Examples
    --------
    >>> named("lovelaceada_LATE_1234_56789_lab1.ipynb")
    Named(student='lovelaceada_1234', time=None, late=True, has_assignment=False, known_as='')
    >>> named("lab1_my_answers.ipynb")
    """
    said = [(found, named) for pattern in PLATFORMS if (found := pattern.fullmatch(name)) and (named := _named(found))]
    return max(said, key=lambda one: len(one[0]["rest"] or ""), default=(None, None))[1]


def _named(found: re.Match[str]) -> Named | None:
    if found.re is MOODLE:
        return Named(found["who"], known_as=found["name"])
    if found.re is BLACKBOARD:
        return _at(found["who"], found["time"], "%Y-%m-%d-%H-%M-%S", has_assignment=True)
    if found.re is BRIGHTSPACE:
        who, time = f"{found['who']} {found['id']}", f"{found['day']} {found['clock']:0>7}"
        return _at(who, time, "%b %d, %Y %I%M %p", known_as=found["who"])
    if (found["user"] or found["who"].startswith("anon_")) and not NOT_CANVAS.match(found.string):
        return Named(found["who"] + (found["user"] or ""), late=bool(found["late"]))
    return None


def _at(student: str, time: str, form: str, **more: Any) -> Named | None:
    """None if this is not a time, because then the student chose the name."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return Named(student, datetime.strptime(time, form).astimezone(), **more)
    return None


def named_in(path: PurePath) -> Named | None:
    """What the outermost name says that a platform gave. A student chooses the names inside of it."""
    return next((found for part in path.parts if (found := named(part))), None)


def gradescope(folder: Path) -> dict[str, list[Named]]:
    """Who handed in each folder of an export of Gradescope: one student, or the members of a group; none elsewhere.

    Raises
    ------
    LabError
        The file that names them cannot be read.
    """
    file = folder / GRADESCOPE
    if not os.path.isfile(file):
        return {}
    try:
        found = _without_types(file.read_text(encoding="utf-8"))
        return {
            str(name): [_submitter(one, of.get(":created_at"), str(name)) for one in of[":submitters"]]
            for name, of in found.items()
        }
    except OSError as error:
        raise LabError(f"{GRADESCOPE} cannot be read: {error.strerror}.") from None
    except Exception as error:  # not UTF-8, not YAML, or without the fields that Gradescope writes
        raise LabError(f"{GRADESCOPE} does not name students as Gradescope does: {type(error).__name__}.") from None


def _without_types(text: str) -> Any:
    """What a YAML file holds. Objects of Ruby are plain dicts and lists."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # it may hold all tests' results
        def plain(self, _: str, node: Any) -> Any:
            if isinstance(node, yaml.MappingNode):
                return self.construct_mapping(node, deep=True)
            is_list = isinstance(node, yaml.SequenceNode)
            return self.construct_sequence(node, deep=True) if is_list else self.construct_scalar(node)

    Loader.add_multi_constructor("!", Loader.plain)
    return yaml.load(text, Loader)


def _submitter(fields: dict[str, Any], created: Any, folder: str) -> Named:
    """A student, who may have no name or no number there."""
    created = created.get("utc") if isinstance(created, dict) else created  # as Ruby on Rails writes a time
    time = created.astimezone() if isinstance(created, datetime) else None
    known = [str(fields[one]) for one in (":name", ":sid", ":email") if fields.get(one)]
    return Named("_".join(known[:2]) or folder, time)


def assignment(students: list[str]) -> str:
    """What stands before the names of all students, as Blackboard writes it.

    Examples
    --------
    >>> assignment(["Lab 1_ada", "Lab 1_adele"])
    'Lab 1_'
    """
    first = students[0] if students else ""
    ends = [place + 1 for place, letter in enumerate(first) if letter == "_"]
    shared = [first[:end] for end in ends if all(one.startswith(first[:end]) for one in students)]
    return max(shared, key=len, default="")
