"""The notebooks of a class: found in a folder or in a zip of a learning platform, one per student.

A student's name is the one that the platform gives (`platforms`), else that of the folder that holds the notebook, or
that of the file if all files lie in one folder. Of several attempts the last one counts, and of several notebooks that
of this lab.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

from rooflab.grading import lab as labs
from rooflab.grading import platforms
from rooflab.grading.lab import Lab, LabError, marks

NOT_THEIRS = ("__MACOSX",)
MAX_INNER = 100  # notebooks in a zip that a student made
UTF_8 = 0x800  # the flag of a zip's entry whose name is in UTF-8
BROKEN = (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError)


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
    """Write the notebooks of a zip below `folder`, and those of zips in it, and nothing else.

    Raises
    ------
    LabError
        It is not a zip, or cannot be read.
    """
    try:
        with zipfile.ZipFile(archive) as source:
            for member, place in _members(source, (".ipynb", ".zip")):
                with source.open(member) as packed:
                    content = packed.read(labs.MAX_NOTEBOOK_BYTES + 1)  # a byte too many is refused when it is read
                if place.suffix == ".ipynb":
                    _write(folder, place, content, member)
                elif not _unpack_inner(content, folder, place):
                    _write(folder, place, b"", member)  # so that its student is not forgotten
    except BROKEN as error:
        raise LabError(f"{archive.name} cannot be unpacked: {error}.") from None
    return folder


def _members(source: zipfile.ZipFile, kinds: tuple[str, ...]) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """Its files of these kinds that a student handed in, and where they go."""
    for member in source.infolist():
        name = member.filename
        if not member.flag_bits & UTF_8:  # some programs write UTF-8 and do not say so
            with contextlib.suppress(UnicodeError):
                name = name.encode("cp437").decode()
        place = PurePosixPath(name.replace("\\", "/"))
        leads_out = place.is_absolute() or _is_nobodys(place.parts)  # `..` is nobody's, because of its dot
        if place.suffix in kinds and not (member.is_dir() or leads_out):
            yield member, place


def _unpack_inner(content: bytes, folder: Path, place: PurePosixPath) -> bool:
    """Write the notebooks of a zip that a student made. Returns whether there are any, and they are not too large."""
    left, found = labs.MAX_NOTEBOOK_BYTES, []
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as source:
            for member, inner in _members(source, (".ipynb",)):
                with source.open(member) as packed:
                    text = packed.read(left + 1)
                left -= len(text)
                found.append((place.with_suffix("") / inner, text, member))
                if left < 0 or len(found) > MAX_INNER:
                    return False
        for to, text, member in found:
            _write(folder, to, text, member)
    except BROKEN:
        return False
    return bool(found)


def _write(folder: Path, place: PurePosixPath, content: bytes, member: zipfile.ZipInfo) -> None:
    """A file of a zip, with its time."""
    to = folder.joinpath(*place.parts)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(content)
    with contextlib.suppress(ValueError, OverflowError):  # an odd date
        at = datetime(*member.date_time).timestamp()
        os.utime(to, (at, at))


def collect(folder: Path, lab: Lab) -> list[Handed]:
    """What was handed in for this lab, one entry per student, in the order of their names."""
    found = {path: _marked_cells(path, lab) for path in _files(folder)}
    theirs = {path: count for path, count in found.items() if count != 0}  # another lab's notebook has none
    base = folder
    while len(theirs) > 1 and len(top := {path.relative_to(base).parts[0] for path in theirs}) == 1:
        base = base / top.pop()
    known = {path: platforms.of(path.relative_to(folder)) for path in theirs}
    assignment = platforms.assignment([name.student for name in known.values() if name and name.has_assignment])
    students: dict[str, list[Path]] = {}
    for path, name in known.items():
        first, *rest = path.relative_to(base).parts
        student = name.student if name else first if rest else path.stem
        if name and name.has_assignment:
            student = student.removeprefix(assignment)
        students.setdefault(unicodedata.normalize("NFC", student), []).append(path)
    names = _safe(sorted(students))
    return [_choice(names[student], {path: theirs[path] for path in students[student]}) for student in sorted(students)]


def _choice(student: str, notebooks: dict[Path, int | LabError]) -> Handed:
    times = {path: name.time for path in notebooks if (name := platforms.of(path)) and name.time}
    if times:
        last = max(times.values())
        notebooks = {path: found for path, found in notebooks.items() if times.get(path) == last}
    counts = {path: count for path, count in notebooks.items() if isinstance(count, int)}
    if not counts:
        return Handed(student, None, str(next(iter(notebooks.values()))))
    best = [path for path, count in counts.items() if count == max(counts.values())]
    if len(best) > 1:
        names = ", ".join(sorted(path.name for path in best))
        return Handed(student, None, f"There are {len(best)} notebooks of this lab: {names}.")
    return Handed(student, best[0])


def _files(folder: Path) -> Iterator[Path]:
    """Notebooks and students' zips. A zip right in the folder of the class counts only if a platform named it."""
    for path in sorted([*folder.rglob("*.ipynb"), *folder.rglob("*.zip")]):
        parts = path.relative_to(folder).parts
        theirs = path.suffix == ".ipynb" or len(parts) > 1 or platforms.named(path.name)
        if theirs and not _is_nobodys(parts) and path.is_file() and not path.is_symlink():
            yield path


def _is_nobodys(parts: tuple[str, ...]) -> bool:
    """Whether a program made it, and no student handed it in."""
    return any(part.startswith(".") or part in NOT_THEIRS for part in parts)


def _marked_cells(path: Path, lab: Lab) -> int | LabError:
    """How many cells of the lab a notebook holds, or why it cannot be read."""
    keys = {cell.key for cell in lab.cells}
    if path.suffix == ".zip":
        return LabError(f"{path.name} is a zip without a notebook that can be read: ask for the notebook itself.")
    try:
        cells = labs.read_notebook(path)["cells"]
    except LabError as error:
        return error
    return sum(str(marks(cell).get("grade_id") or cell.get("id")) in keys for cell in cells)


def _safe(students: list[str]) -> dict[str, str]:
    """A name for each student that is safe as a file name, and is not a formula in a table."""
    names: dict[str, str] = {}
    for student in students:
        plain = re.sub(r"[^\w.@ +-]", "_", student)[:100].strip(". ") or "student"
        plain = re.sub(r"^[^\w]", "_", plain)
        number, name = 2, plain
        while name.casefold() in {taken.casefold() for taken in names.values()}:
            name, number = f"{plain}_{number}", number + 1
        names[student] = name
    return names
