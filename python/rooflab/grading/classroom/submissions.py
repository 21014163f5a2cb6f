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
import struct
import unicodedata
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, BinaryIO

from rooflab.files import is_full
from rooflab.grading.classroom import platforms
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.model import Lab, LabError, marks

NOT_THEIRS = ("__MACOSX",)
ASK = "ask for the notebook itself"
MAX_INNER = 100  # notebooks in a zip that a student made
MAX_DEPTH = 100  # folders around a file in a zip
MAX_NAME = 100, 200  # characters and bytes of a student's name
ENTRY, ENTRY_BYTES, NAME_IS_UTF_8 = b"PK\x01\x02", 46, 0x800  # of a zip's list of what it holds


@dataclass(frozen=True)
class Handed:
    """What one student handed in: the file, or why there is none to grade. `student` is safe as a file name. `seed` is
    that of an earlier grade.
    """

    student: str
    path: Path | None
    problem: str = ""
    seed: int | None = None


def unpacked(archive: Path, folder: Path) -> dict[Path, str]:
    """Write the notebooks of a zip below `folder`, and those of zips in it, and nothing else.

    Returns
    -------
    dict
        The files that are not there because they cannot be unpacked, and why, for `collect`.

    Raises
    ------
    LabError
        The whole is not a zip, or cannot be read.
    """
    damaged = {}
    try:
        with archive.open("rb") as file, _opened(file) as source:
            for member, place in _members(source, (".ipynb", ".zip")):
                try:
                    _unpack(source, member, folder, place)
                except Exception as error:  # whatever it is, it costs no other student a grade
                    if is_full(error):
                        raise
                    damaged[folder / place] = f"{place.name} cannot be unpacked ({labs.first_line(error)}): {ASK}."
    except Exception as error:
        raise LabError(f"{archive.name} cannot be unpacked: {labs.first_line(error)}.") from None
    return damaged


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    """A zip, even if it says of a name that it is UTF-8, and it is not."""
    names = _Names(file)
    source = zipfile.ZipFile(names)  # type: ignore[arg-type]  # it reads and seeks
    names.listing = False
    return source


class _Names:
    """A zip's file. While the list of what it holds is read, it says of no name wrongly that it is UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.listing = file, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def read(self, size: int = -1) -> bytes:
        data, at = bytearray(self.file.read(size)), 0
        while self.listing and data.startswith(ENTRY, at) and at + ENTRY_BYTES <= len(data):
            (flags,), sizes = struct.unpack_from("<H", data, at + 8), struct.unpack_from("<HHH", data, at + 28)
            name = data[at + ENTRY_BYTES : at + ENTRY_BYTES + sizes[0]]
            if flags & NAME_IS_UTF_8 and name.decode("utf-8", "replace").encode() != name:
                struct.pack_into("<H", data, at + 8, flags & ~NAME_IS_UTF_8)
            at += ENTRY_BYTES + sum(sizes)
        return bytes(data)


def _members(source: zipfile.ZipFile, kinds: tuple[str, ...]) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """Its files of these kinds that a student handed in, and where they go."""
    for member in source.infolist():
        name = member.filename
        if not member.flag_bits & NAME_IS_UTF_8:  # some programs write UTF-8 and do not say so
            with contextlib.suppress(UnicodeError):
                name = name.encode("cp437").decode()
        place = PurePosixPath(name.replace("\\", "/"))
        leads_out = place.is_absolute() or _is_nobodys(place.parts)  # `..` is nobody's, because of its dot
        if place.suffix in kinds and not (member.is_dir() or leads_out):
            yield member, place


def _unpack(source: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, place: PurePosixPath) -> None:
    """Write a notebook of a zip, or the notebooks of a student's zip in it, which may be anything."""
    with source.open(member) as packed:
        content = packed.read(labs.MAX_NOTEBOOK_BYTES + 1)  # a byte too many is refused when it is read
    if place.suffix == ".ipynb":
        return _write(folder, place, content, member)
    left, found = labs.MAX_NOTEBOOK_BYTES, []
    with _opened(io.BytesIO(content)) as inside:
        for one, inner in _members(inside, (".ipynb",)):
            with inside.open(one) as packed:
                text = packed.read(left + 1)
            left -= len(text)
            found.append((place.with_suffix("") / inner, text, one))
            if left < 0 or len(found) > MAX_INNER:
                raise ValueError(f"it holds more than {labs.MAX_NOTEBOOK_BYTES // 2**20} MiB or {MAX_INNER} notebooks")
    if not found:
        raise ValueError("it holds no notebook")
    for to, text, one in found:
        _write(folder, to, text, one)
    return None


def _write(folder: Path, place: PurePosixPath, content: bytes, member: zipfile.ZipInfo) -> None:
    """A file of a zip, with its time."""
    if len(place.parts) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} folders lie one in the other")
    to = folder.joinpath(*place.parts)
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_bytes(content)
    with contextlib.suppress(ValueError, OverflowError, OSError):  # an odd date
        at = datetime(*member.date_time).timestamp()
        os.utime(to, (at, at))


def collect(folder: Path, lab: Lab, damaged: Mapping[Path, str] = MappingProxyType({})) -> list[Handed]:
    """What was handed in for this lab, one entry per student, in the order of their names. Files that are `damaged`
    could not be unpacked.
    """
    files, unread = _files(folder)
    found = {path: _marked_cells(path, lab) for path in files}
    found |= {path: LabError(why) for path, why in {**unread, **damaged}.items()}
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


def _files(folder: Path) -> tuple[list[Path], dict[Path, str]]:
    """Notebooks and students' zips, and the folders that cannot be read, with the reason. A zip right in the folder of
    the class counts only if a platform named it.
    """
    found: list[Path] = []
    unread: dict[Path, str] = {}
    todo = [folder]
    while todo:  # a student's folders may lie one in the other deeper than Python calls functions
        inside = todo.pop()
        try:
            entries = list(os.scandir(inside))
        except OSError as error:
            if inside == folder:
                raise
            unread[inside] = f"The folder {inside.name} cannot be read: {error.strerror}."
            continue
        todo += [inside / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        found += [inside / name for name in names if name.endswith((".ipynb", ".zip"))]
    found = sorted(path for path in found if _is_theirs(path.relative_to(folder).parts))
    return found, {path: why for path, why in unread.items() if not _is_nobodys(path.relative_to(folder).parts)}


def _is_theirs(parts: tuple[str, ...]) -> bool:
    named = parts[-1].endswith(".ipynb") or len(parts) > 1 or platforms.named(parts[-1])
    return bool(named) and not _is_nobodys(parts)


def _is_nobodys(parts: tuple[str, ...]) -> bool:
    """Whether a program made it, and no student handed it in."""
    return any(part.startswith(".") or part in NOT_THEIRS for part in parts)


def _marked_cells(path: Path, lab: Lab) -> int | LabError:
    """How many cells of the lab a notebook holds, or why it cannot be read."""
    keys = {cell.key for cell in lab.cells}
    if path.suffix == ".zip":
        return LabError(f"{path.name} is a zip without a notebook that can be read: {ASK}.")
    try:
        cells = labs.read_notebook(path)["cells"]
        return sum(str(marks(cell).get("grade_id") or cell.get("id")) in keys for cell in cells)
    except LabError as error:
        return error
    except Exception as error:
        return LabError(f"{path.name} cannot be read: {labs.first_line(error)}.")


def _safe(students: list[str]) -> dict[str, str]:
    """A name for each student that is safe as a file name, and is not a formula in a table."""
    names: dict[str, str] = {}
    for student in students:
        characters, size = MAX_NAME
        plain = re.sub(r"[^\w.@ +-]", "_", student)[:characters]
        plain = plain.encode()[:size].decode(errors="ignore").strip(". ") or "student"
        plain = re.sub(r"^[^\w]", "_", plain)
        number, name = 2, plain
        while name.casefold() in {taken.casefold() for taken in names.values()}:
            name, number = f"{plain}_{number}", number + 1
        names[student] = name
    return names
