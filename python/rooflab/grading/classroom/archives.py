"""The zip of a class, and the zips that students put into it: their notebooks are unpacked, and all else is named."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from rooflab.files import is_full, readable
from rooflab.grading.classroom.platforms import GRADESCOPE
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.model import LabError

NOT_THEIRS = (  # folders and files that programs make
    "__MACOSX", ".cache", ".config", ".git", ".github", ".idea", ".ipynb_checkpoints", ".ipython", ".jupyter", ".local",
    ".nbgrader", ".Trash", ".venv", ".virtual_documents", ".vscode", "Thumbs.db", "desktop.ini", "Icon\r",
)  # fmt: skip
ASK = "ask for the notebook itself"
MAX_INNER = 100  # notebooks in a zip that a student made
MAX_DEPTH = 100  # folders around a file in a zip
ENTRY, ENTRY_BYTES, ENCRYPTED, NAME_IS_UTF_8 = b"PK\x01\x02", 46, 1, 0x800  # of a zip's list of what it holds


def is_notebook(name: str) -> bool:
    """Whether a file may be a notebook: `LAB1.IPYNB`, and `lab1.ipynb.txt` as some browsers save it, may be one too."""
    name = name.casefold()
    return ".ipynb" in name and not is_zip(name)


def is_zip(name: str) -> bool:
    """Whether a file is a zip by its name."""
    return name.casefold().endswith(".zip")


def theirs(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The part of a path that a student handed in, up to what a program made: all of it, some folders, or nothing. The
    outermost folder may be called `.bob` if there is a notebook in it and no program is known to make it.
    """
    named = len(parts) > 1 and is_notebook(parts[-1]) and parts[0] not in NOT_THEIRS
    odd = (at for at, part in enumerate(parts) if part in NOT_THEIRS or (part.startswith(".") and (at or not named)))
    return parts[: next(odd, len(parts))]


def unpacked(archive: Path, folder: Path) -> dict[Path, str]:
    """Write the notebooks of a zip below `folder`, those of zips in it, and Gradescope's list of students; no more.

    Returns
    -------
    dict
        The other files and folders of the zip, for `collect`: why a notebook cannot be unpacked, else no text.

    Raises
    ------
    LabError
        The whole is not a zip, or cannot be read.
    """
    left = {}
    try:
        with readable(archive).open("rb") as file, _opened(file) as source:
            for member, place in _members(source):
                whose = theirs(place.parts)
                is_theirs = whose == place.parts
                is_read = is_notebook(place.name) or is_zip(place.name) or place.name == GRADESCOPE
                if is_theirs and not member.is_dir() and not is_read:
                    left[folder / place] = ""
                    continue
                try:
                    if member.is_dir() or not is_theirs:  # so that its student is seen
                        _made(folder.joinpath(*whose))
                        continue
                    _unpack(source, member, folder, place)
                except Exception as error:  # whatever it is, it costs no other student a grade
                    if is_full(error):
                        raise
                    left[folder / place] = f"{place.name} cannot be unpacked ({labs.first_line(error)}): {ASK}."
    except Exception as error:
        raise LabError(f"{archive.name} cannot be unpacked: {labs.first_line(error)}.") from None
    return left


def _opened(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip, even if a name is marked as UTF-8 and is not."""
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


def _members(source: zipfile.ZipFile) -> Iterator[tuple[zipfile.ZipInfo, PurePosixPath]]:
    """What it holds, but for what leads out of its folder, and where it goes."""
    for member in source.infolist():
        name = member.filename
        if not member.flag_bits & NAME_IS_UTF_8:  # some programs write UTF-8 and do not say so
            with contextlib.suppress(UnicodeError):
                name = name.encode("cp437").decode()
        place = PurePosixPath(name.replace("\\", "/"))
        if not (place.is_absolute() or ".." in place.parts):
            yield member, place


def _unpack(source: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, place: PurePosixPath) -> None:
    """Write a notebook of a zip, or the notebooks of a student's zip in it, which may be anything. What is in it has
    the time of the zip, because a student can put any time into it.
    """
    content = _read(source, member, labs.MAX_FILE_BYTES + 1)  # a byte too many is refused when it is read
    if not is_zip(place.name):
        return _write(folder, place, content, member)
    for inner, text in _notebooks(io.BytesIO(content)):
        _write(folder, place.with_suffix("") / inner, text, member)
    return None


def unpacked_from(archive: Path, folder: Path) -> list[Path]:
    """Write the notebooks of a zip that a student made to a new `folder`, with the time of the zip.

    Raises
    ------
    Exception
        Whatever a broken zip makes a library raise.
    """
    at, made = archive.stat().st_mtime, []
    with archive.open("rb") as file:
        for inner, text in _notebooks(file):
            made.append(to := folder / inner)
            _made(to.parent)
            to.write_bytes(text)
            os.utime(to, (at, at))
    return made


def _notebooks(file: BinaryIO) -> list[tuple[PurePosixPath, bytes]]:
    """The notebooks of a student's zip, which may be anything."""
    left, found = labs.MAX_FILE_BYTES, []
    with _opened(file) as inside:
        for one, inner in _members(inside):
            if one.is_dir() or not is_notebook(inner.name) or theirs(inner.parts) != inner.parts:
                continue
            text = _read(inside, one, left + 1)
            left -= len(text)
            found.append((inner, text))
            if left < 0 or len(found) > MAX_INNER:
                raise ValueError(f"it holds more than {labs.MAX_FILE_BYTES // 2**20} MiB or {MAX_INNER} notebooks")
    if not found:
        raise ValueError("it holds no notebook")
    return found


def _read(source: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """At most so many bytes of a file of a zip."""
    if member.flag_bits & ENCRYPTED:
        raise ValueError("it is encrypted")
    with source.open(member) as packed:
        return packed.read(most)


def _made(folder: Path) -> None:
    """Make a folder, if it is not there yet."""
    if len(folder.parts) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} folders lie one in the other")
    folder.mkdir(parents=True, exist_ok=True)


def _write(folder: Path, place: PurePosixPath, content: bytes, member: zipfile.ZipInfo) -> None:
    """A file of a zip, with its time."""
    to = folder.joinpath(*place.parts)
    _made(to.parent)
    to.write_bytes(content)
    at = 0.0  # an odd date says nothing
    with contextlib.suppress(ValueError, OverflowError, OSError):
        at = datetime(*member.date_time).timestamp()
    os.utime(to, (at, at))
