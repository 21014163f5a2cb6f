"""The parts of a lab's source, cell by cell, and what its author wrote wrong in them, in one sentence each.

What is misspelt here would be left out without a word: a part that no lab takes, an option that does not count, or a
marker, and with a marker the answer would be handed out.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

from rooflab.grading.lab.errors import LabError

PART = re.compile(r"\d\d_.*\.py")
MARKERS = tuple(f"### {end} {what}" for what in ("SOLUTION", "HIDDEN TESTS") for end in ("BEGIN", "END"))
MARKER = re.compile(r"#+\W*(begin|end)\W*(solution|hidden).*", re.IGNORECASE)
MARKS = ("grade_id", "grade", "solution", "points", "locked", "schema_version", "task", "cell_type", "checksum")
OPTIONS = {"needs": "of tests", "seconds": "of tests", "memory_gb": "of tests", "counters": "of any cell of a question"}
HEADER = "# ---\n# jupyter:\n#   rooflab:\n#     notebook: {}_NAME\n# ---"


def paths(folder: Path) -> list[Path]:
    """The parts in a lab's folder, in order, and what was meant as one: all that begins with a digit."""
    return sorted(folder.glob("[0-9]*.py"))


def read(folder: Path, jupytext: ModuleType) -> tuple[str, list[tuple[str, Any]]]:
    """The name of the lab's notebook, and its raw cells, each with the place where it stands.

    Raises
    ------
    LabError
        A part cannot be read, or something in it is misspelt.
    """
    if other := [path.name for path in paths(folder) if not PART.fullmatch(path.name)]:
        raise LabError(f"{folder.name}/{other[0]} is not a part of a lab: its name has to begin with two digits and _.")
    found: list[tuple[str, Any]] = []
    stem = None
    for path in paths(folder):
        where = f"{folder.name}/{path.name}"
        try:
            part = jupytext.reads(path.read_text(encoding="utf-8-sig"), fmt="py:percent")
        except OSError as error:
            raise LabError(f"{where} cannot be read: {error.strerror}.") from None
        except Exception as error:  # text that is not UTF-8, or whatever the reader of YAML raises at a header
            said = " ".join(str(error).split())
            raise LabError(f"{where} is not a part in percent format: {said}.") from None
        if not found:
            header = part.metadata.get("rooflab")
            stem = header.get("notebook") if isinstance(header, dict) else None
        for number, raw in enumerate(part.cells, 1):
            place = f"{where}, cell {number}"
            if fault := _fault(raw):
                raise LabError(f"{place}: {fault}")
            found.append((place, raw))
    if not isinstance(stem, str) or not re.fullmatch(rf"{folder.name}_[\w-]+", stem):
        header = HEADER.format(folder.name)
        named = f", not {stem}" if stem else ""
        raise LabError(f"{folder.name}: the header of its first part has to name its notebook{named}:\n{header}")
    return stem, found


def _fault(raw: Any) -> str:
    if "incorrectly_encoded_metadata" in raw.metadata:
        return f"its metadata are not JSON: {raw.metadata['incorrectly_encoded_metadata']}"
    fields, options = raw.metadata.get("nbgrader", {}), raw.metadata.get("rooflab", {})
    for name, found, known in (("nbgrader", fields, MARKS), ("rooflab", options, OPTIONS)):
        if not isinstance(found, dict):
            return f"{name} has to be in braces, with a name before each value."
        if unknown := found.keys() - set(known):
            return f"{name} has no {min(unknown)!r}; it knows {', '.join(known)}."
    is_test = bool(fields.get("grade")) and not fields.get("solution")
    if (is_test or fields.get("solution")) and not isinstance(fields.get("grade_id"), str):
        return "a test or an answer needs a grade_id, such as q1_3_test."
    return _fault_of_points(fields, is_test) or _fault_of_options(options, is_test) or _fault_of_markers(raw, is_test)


def _fault_of_points(fields: dict, is_test: bool) -> str:
    points = fields.get("points", 0)
    if type(points) is not int:
        return f"points are a whole number, not {points!r}."
    if points and not is_test:
        return "points belong to test cells. An answer in words has none here, because its points are entered by hand."
    return ""


def _fault_of_options(options: dict, is_test: bool) -> str:
    for name, value in options.items():
        if not is_test and OPTIONS[name] == "of tests":
            return f"{name} belongs to test cells."
        if name == "needs":
            right = isinstance(value, list) and all(isinstance(one, str) for one in value)
        else:
            right = type(value) is bool if name == "counters" else type(value) in (int, float) and value > 0
        if not right:
            kind = {"needs": 'a list such as ["q1_1"]', "counters": "true or false"}.get(name, "a positive number")
            return f"{name} has to be {kind}, not {value!r}."
    return ""


def _fault_of_markers(raw: Any, is_test: bool) -> str:
    is_answer = bool(raw.metadata.get("nbgrader", {}).get("solution"))
    for line in map(str.strip, raw.source.split("\n")):
        if not MARKER.fullmatch(line):
            continue
        if line not in MARKERS:
            return f"{line!r} is not a marker. The markers are {', '.join(MARKERS)}."
        if line.endswith("SOLUTION") and not is_answer:
            return f'{line!r} stands in a cell that is not an answer: an answer has "solution": true.'
        if line.endswith("TESTS") and not (is_test or "setup" in raw.metadata.get("tags", ())):
            return f"{line!r} stands in a cell that is neither a test nor a set-up cell."
    return ""
