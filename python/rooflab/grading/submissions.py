"""The notebooks of a class: found in a folder or in a zip of a learning platform, one a student.

A student is named by the folder that holds the notebook, or by the file where it lies beside the others'. Of several
notebooks in a student's folder the one of this lab counts.
"""

from __future__ import annotations

import contextlib
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from rooflab.grading import lab as labs
from rooflab.grading.lab import Lab, LabError, marks

NOT_THEIRS = ("__MACOSX",)


@dataclass(frozen=True)
class Handed:
    """What one student handed in: the file, or why there is none to grade. `student` is safe as a file name. `seed` is
    that of an earlier grade.
    """

    student: str
    path: Path | None
    problem: str = ""
    seed: int | None = None


def unpacked(archive: Path, folder: Path) -> Path:
    """Write the notebooks of a zip below `folder`, and nothing else of it.

    Raises
    ------
    LabError
        It is no zip, or cannot be read.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            for member in source.infolist():
                place = PurePosixPath(member.filename)
                if member.is_dir() or place.suffix != ".ipynb" or place.is_absolute() or ".." in place.parts:
                    continue
                with source.open(member) as packed:
                    text = packed.read(labs.MAX_NOTEBOOK_BYTES + 1)  # one byte more is refused when it is read
                to = folder.joinpath(*place.parts)
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(text)
                with contextlib.suppress(ValueError, OverflowError):  # an odd date
                    at = datetime(*member.date_time).timestamp()
                    os.utime(to, (at, at))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise LabError(f"{archive.name} cannot be unpacked: {error}.") from None
    return folder


def collect(folder: Path, lab: Lab) -> list[Handed]:
    """What was handed in for this lab, a student each, in the order of their names."""
    found = {path: _marked_cells(path, lab) for path in _notebooks(folder)}
    theirs = {path: count for path, count in found.items() if count != 0}  # another lab's notebook has none
    base = folder
    while len(theirs) > 1 and len(top := {path.relative_to(base).parts[0] for path in theirs}) == 1:
        base = base / top.pop()
    students: dict[str, list[Path]] = {}
    for path in theirs:
        first, *rest = path.relative_to(base).parts
        students.setdefault(first if rest else path.stem, []).append(path)
    names = _safe(sorted(students))
    return [_choice(names[student], {path: theirs[path] for path in students[student]}) for student in sorted(students)]


def _choice(student: str, notebooks: dict[Path, int | LabError]) -> Handed:
    counts = {path: count for path, count in notebooks.items() if isinstance(count, int)}
    if not counts:
        return Handed(student, None, str(next(iter(notebooks.values()))))
    best = [path for path, count in counts.items() if count == max(counts.values())]
    if len(best) > 1:
        names = ", ".join(sorted(path.name for path in best))
        return Handed(student, None, f"There are {len(best)} notebooks of this lab: {names}.")
    return Handed(student, best[0])


def _notebooks(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith(".") or part in NOT_THEIRS for part in parts)
        if not hidden and path.is_file() and not path.is_symlink():
            yield path


def _marked_cells(path: Path, lab: Lab) -> int | LabError:
    """How many cells of the lab a notebook holds, or why it cannot be read."""
    keys = {cell.key for cell in lab.cells}
    try:
        cells = labs.read_notebook(path)["cells"]
    except LabError as error:
        return error
    return sum(str(marks(cell).get("grade_id") or cell.get("id")) in keys for cell in cells)


def _safe(students: list[str]) -> dict[str, str]:
    """Names that are file names, and text in a table and not a formula: one for each student."""
    names: dict[str, str] = {}
    for student in students:
        plain = re.sub(r"[^\w.@ +-]", "_", student)[:100].strip(". ") or "student"
        plain = re.sub(r"^[^\w]", "_", plain)
        number, name = 2, plain
        while name.casefold() in {taken.casefold() for taken in names.values()}:
            name, number = f"{plain}_{number}", number + 1
        names[student] = name
    return names
