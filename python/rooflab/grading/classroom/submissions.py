"""The notebooks of a class: found in a folder or in a zip of a learning platform, one per student.

A student's name is the one that the platform gives (`platforms`), else that of the folder that holds the notebook, or
that of the file if all files lie in one folder. The outermost name decides, because a student chooses those inside.
Of several attempts the last one counts, and of several notebooks that with the most answers. Every file and folder
belongs to a student, who gets a grade or a reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from rooflab.files import is_full
from rooflab.grading.classroom import platforms
from rooflab.grading.classroom.archives import ASK, is_notebook, is_zip, theirs, unpacked_from
from rooflab.grading.classroom.platforms import Named
from rooflab.grading.lab import model as labs
from rooflab.grading.lab.model import Lab, LabError
from rooflab.grading.lab.repair import keys, read_submission

MAX_NAME = 100, 200  # characters and bytes of a student's name
OURS = re.compile(r"(grades|gradebook|findings(-\d+)?)", re.IGNORECASE)  # files that `rooflab grade` writes
MAX_LISTED = 5  # files that a reason names
NO_FILES = f"{platforms.GRADESCOPE} names this student, and the export has no files of the submission."
TWO_FORMS = (
    "The name is written in two forms of Unicode, which look alike, and all of it was taken for one student's: ask "
    "whether it is."
)


@dataclass(frozen=True)
class Handed:
    """What one student handed in: the file, or why there is none to grade. `student` is safe as a file name. `seed` is
    that of an earlier grade, `note` what an instructor should know. `time` and `late` are what a platform says,
    `known_as` is the name as a roster may have it: without a number that only the platform knows, and with signs that
    are not safe. `listed` is what a roster says of the student.
    """

    student: str
    path: Path | None
    problem: str = ""
    seed: int | None = None
    note: str = ""
    time: datetime | None = None
    late: bool | None = None
    known_as: str = ""
    listed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _File:
    """A file or a folder. `cells` says how many cells of the lab a notebook holds, else `why` that it is not graded."""

    path: Path
    cells: int = 0
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether it was meant to be graded: a notebook or a zip, even if it cannot be read."""
        return is_notebook(self.path.name) or is_zip(self.path.name) or bool(self.why)


def collect(
    folder: Path,
    lab: Lab,
    absent: Mapping[Path, str] = MappingProxyType({}),
    left_out: Collection[Path] = (),
    unpacked: Path | None = None,
) -> list[Handed]:
    """What was handed in for this lab, one entry per student, in the order of their names. Files that are `absent` were
    not unpacked, and their texts say why. What is `left_out`, such as the results of an earlier run, is no student's.
    Zips are unpacked below the folder `unpacked`.

    Raises
    ------
    LabError
        Most folders hold several students' folders, or an export's list of students cannot be read.
    """
    outside = set(left_out)
    found = [(path, why) for path, why in _walk(folder) if outside.isdisjoint((path, *path.parents))]
    files = {path: _File(path, why=why) if why else _read(path, lab, unpacked) for path, why in found}
    files |= {path: _File(path, why=why) for path, why in absent.items()}
    around = {parent for path in files for parent in path.parents}
    files = {path: file for path, file in files.items() if path not in around}  # of folders those that are empty
    base = _base(folder, files)
    inside = {path: file for path, file in files.items() if base in path.parents}
    deep = [path for path, file in inside.items() if file.counts and path.parent != base]
    exported = bool(deep) and all(platforms.named_in(path.relative_to(base)) for path in deep)
    flat = any(file.counts and path.parent == base and not platforms.named(path.name) for path, file in inside.items())
    groups = platforms.gradescope(base)
    known: dict[Path, Named | None] = {}
    for path, file in inside.items():
        first, *rest = path.relative_to(base).parts
        name = platforms.named_in(path.relative_to(base)) if exported else platforms.named(first)
        name = groups[first][0] if groups.get(first) else name
        if rest or name or file.counts or flat or os.path.isdir(path):
            known[path] = name  # what else lies beside the students' folders is the platform's or the instructor's
    assignment = platforms.assignment([name.student for name in known.values() if name and name.has_assignment])
    students: dict[str, list[Path]] = {}
    written: dict[str, set[str]] = {}  # each student's name, as files and folders have it
    for path, name in known.items():
        first, *rest = path.relative_to(base).parts
        student = name.student if name else first if rest or os.path.isdir(path) else _stem(first)
        if name and name.has_assignment:
            student = student.removeprefix(assignment)
        for one in [member.student for member in groups.get(first, ())] or [student]:
            students.setdefault(who := unicodedata.normalize("NFC", one), []).append(path)
            written.setdefault(who, set()).add(one)
    for place, members in groups.items():  # who is in Gradescope's list and has no files in the export
        for member in members:
            if (who := unicodedata.normalize("NFC", member.student)) not in students:
                missing = base / place
                files[missing], known[missing], students[who] = _File(missing, why=NO_FILES), member, [missing]
    inner = {student: _folders(base, files, known, paths) for student, paths in students.items()}
    inner = _check_sections({student: found for student, found in inner.items() if len(found) > 1}, len(students))
    names = safe_names(sorted(students))
    chosen = {
        student: _choice(name, lab, {files[path]: known[path] for path in students[student]}, inner.get(student, ()))
        for student, name in zip(sorted(students), names, strict=True)
    }
    alike = {student: TWO_FORMS for student, forms in written.items() if len(forms) > 1}
    return [
        replace(
            one,
            known_as=one.known_as or student * (one.student != student),
            note=" ".join(filter(None, [one.note, alike.get(student)])),
        )
        for student, one in chosen.items()
    ]


def _folders(
    base: Path, files: Mapping[Path, _File], known: Mapping[Path, Named | None], paths: Iterable[Path]
) -> list[str]:
    """The folders with a notebook of the lab that lie right in a folder which no platform named."""
    inside = [path.relative_to(base).parts for path in paths if files[path].cells and known[path] is None]
    return sorted({parts[1] for parts in inside if len(parts) > 2})


def _check_sections(several: Mapping[str, list[str]], rows: int) -> dict[str, list[str]]:
    """Raise LabError if most folders hold others with a notebook each, whose names differ: these are the students then.
    Names that come again, such as original and work, are parts of one student's work. The other folders are returned.
    """
    times = Counter(name.casefold() for found in several.values() for name in found)
    alone = {name for name, count in times.items() if count == 1}
    if 2 * len(several) > rows and 2 * len(alone) >= times.total():
        first = min(several)
        raise LabError(
            f"Most folders hold several folders with a notebook each, as {first} has {some(several[first])}: grade one "
            "of them at a time, or put the students' folders beside each other."
        )
    return {student: found for student, found in several.items() if alone & {name.casefold() for name in found}}


def some(names: Sequence[str]) -> str:
    """Names for a sentence, which do not fill a page."""
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def _stem(name: str) -> str:
    """The name of a file without its ending, which may be `.ipynb.txt`."""
    return re.sub(r"(?i)\.ipynb.*", "", name) if is_notebook(name) else Path(name).stem


def _base(folder: Path, files: Mapping[Path, _File]) -> Path:
    """The folder of the class: below folders that hold all of it, unless a platform named them after a student."""
    base = folder
    exports = {path.parent for path in files if path.name == platforms.GRADESCOPE and path.parent.parent == folder}
    if len(exports) == 1 and all(exports & set(path.parents) for path in files):
        return exports.pop()
    while sum(file.counts for file in files.values()) > 1 and not os.path.isfile(base / platforms.GRADESCOPE):
        inside = [path.relative_to(base).parts for path, file in files.items() if base in path.parents]
        loose = any(len(parts) == 1 and files[base / parts[0]].counts for parts in inside if base / parts[0] in files)
        tops = {parts[0] for parts in inside if len(parts) > 1 or os.path.isdir(base / parts[0])}
        if loose or len(tops) != 1 or platforms.named(top := tops.pop()):
            break
        base = base / top
    return base


def _choice(student: str, lab: Lab, files: Mapping[_File, Named | None], inner: Sequence[str] = ()) -> Handed:
    """What counts of a student's files. The folders `inner` have a notebook each, and may be those of students."""
    known_as = next((name.known_as for name in files.values() if name), "")
    times = {file: name.time for file, name in files.items() if name and name.time}
    gradable = [file for file in files if file.cells]
    if last := max((times[file] for file in gradable if file in times), default=None):
        gradable = [file for file in gradable if times.get(file) == last]
    if gradable:
        best, note = _best(gradable, lab)
        newer = [file.why for file in files if last and file.why and file in times and times[file] > last]
        later = f"A later attempt was not graded: {newer[0]}" if newer else ""
        sections = f"There are notebooks in {len(inner)} folders, {some(inner)}: ask whether they are students."
        note = " ".join(filter(None, [note, later, sections if inner else ""]))
        late = name.late if (name := files[best]) else None
        return Handed(student, best.path, note=note, time=times.get(best), late=late, known_as=known_as)
    why = next((file.why for file in sorted(files, key=lambda file: file.path) if file.why), "")
    late = next((name.late for name in files.values() if name and name.late is not None), None)
    time = max(times.values(), default=None if late is not None else _time([file.path for file in files]))
    why = why or _nothing([file.path for file in files])
    return Handed(student, None, why, time=time, late=late, known_as=known_as)


def _time(paths: list[Path]) -> datetime | None:
    """The latest time of files that cannot be graded, if it is known. Of a symbolic link it is the link's own."""
    with contextlib.suppress(OSError, ValueError, OverflowError):  # an odd time says nothing
        files = [path for path in paths if path.is_symlink() or os.path.isfile(path)]
        seconds = max((int(path.lstat().st_mtime) for path in files), default=0)
        return datetime.fromtimestamp(seconds).astimezone() if seconds else None
    return None


def _nothing(paths: list[Path]) -> str:
    """Why there is no notebook among these files and folders."""
    names = sorted(path.name for path in paths if not any(path in other.parents for other in paths))
    files = [path.name for path in sorted(paths) if not os.path.isdir(path)]
    if not files:
        return f"The folder {names[0]} is empty or has hidden files only: {ASK}."
    return f"There is no notebook, only {some(files)}: ask for the .ipynb file."


def _best(files: list[_File], lab: Lab) -> tuple[_File, str]:
    """The notebook with the most answers, and a sentence about it if others have answers too."""
    if len(files) == 1:
        return files[0], ""
    written = {file: read_submission(lab, file.path).written for file in files}
    ranked = sorted(files, key=lambda file: (-written[file], -file.cells, len(file.path.name), str(file.path)))
    best, content = ranked[0], ranked[0].path.read_bytes()
    others = [file for file in ranked[1:] if written[file] and file.path.read_bytes() != content]
    if not others:
        return best, ""
    around = os.path.commonpath([file.path.parent for file in files])
    names = {file: os.path.relpath(file.path, around) for file in files}
    counts = ", ".join(f"{names[file]} has {written[file]}" for file in others)
    which = f"Of {len(files)} notebooks {names[best]} was graded, because it has"
    if written[best] > max(written[file] for file in others):
        return best, f"{which} the most answers: {written[best]}; {counts}."
    return best, f"{which} as many answers as others ({written[best]}; {counts}) and comes first: ask which one counts."


def _walk(folder: Path) -> Iterable[tuple[Path, str]]:
    """All files and folders that are a student's, in order, and why one cannot be read. A zip right in the folder of
    the class counts only if a platform named it.
    """
    found: dict[Path, str] = {}
    todo = [folder]
    while todo:  # a student's folders may lie one in the other deeper than Python calls functions
        inside = todo.pop()
        try:
            entries = list(os.scandir(inside))
        except OSError as error:
            if inside == folder:
                raise
            found[inside] = f"The folder {inside.name} cannot be read: {error.strerror}."
            continue
        for entry in entries:
            path = inside / entry.name
            parts, is_dir = path.relative_to(folder).parts, entry.is_dir(follow_symlinks=False)
            if is_dir and theirs(inner := (*parts, "a.ipynb")) == inner:
                todo.append(path)
            if theirs(parts) != parts:
                continue
            found[path] = ""
            if not is_dir and not entry.is_file(follow_symlinks=False):
                found[path] = f"{entry.name} is a link or no file at all, and is not read: {ASK}."
    lone_zip = (path for path in found if is_zip(path.name) and path.parent == folder)
    skipped = {path for path in lone_zip if not platforms.named(path.name) and any(one.is_dir() for one in found)}
    return [(path, found[path]) for path in sorted(found) if path not in skipped]


def _read(path: Path, lab: Lab, unpacked: Path | None) -> _File:
    """How many cells of the lab a notebook holds, or the best notebook of a zip; or why it cannot be read."""
    if os.path.isdir(path) or not (is_notebook(path.name) or is_zip(path.name)):
        return _File(path)
    if is_zip(path.name):
        return _of_zip(path, lab, unpacked)
    try:
        notebook = labs.read_notebook(path)
    except LabError as error:
        return _File(path, why=str(error))
    except Exception as error:
        return _File(path, why=f"{path.name} cannot be read: {labs.first_line(error)}.")
    about = notebook.metadata.get("rooflab")
    other = about.get("lab") if isinstance(about, dict) else None
    given = {cell.public.strip() for cell in lab.cells if cell.locked}
    same = sum(cell["source"].strip() in given for cell in notebook["cells"])
    count = sum(key is not None for key in keys(lab.cells, notebook["cells"]))
    if count and (other in (None, lab.name) or 2 * same > len(given)):  # labs have some keys in common
        return _File(path, cells=count)
    what = f"a notebook of {str(other)[:20]}" if other not in (None, lab.name) else "another notebook"
    return _File(path, why=f"{path.name} is {what} and holds nothing of {lab.name}: {ASK}.")


def _of_zip(path: Path, lab: Lab, unpacked: Path | None) -> _File:
    """The notebook of a student's zip that counts."""
    if unpacked is None:
        return _File(path, why=f"{path.name} is a zip without a notebook that can be read: {ASK}.")
    try:
        inside = unpacked_from(path, Path(tempfile.mkdtemp(dir=unpacked)))
    except Exception as error:  # whatever it is, it costs no other student a grade
        if is_full(error):
            raise
        return _File(path, why=f"{path.name} cannot be unpacked ({labs.first_line(error)}): {ASK}.")
    files = [_read(one, lab, None) for one in inside]
    gradable = [file for file in files if file.cells]
    return _best(gradable, lab)[0] if gradable else files[0]


def safe_names(students: Iterable[str], marks: Iterable[str] | None = None, taken: Collection[str] = ()) -> list[str]:
    """A name for each student that is safe as a file name, is not a formula in a table, and is no name of a file that
    this package writes.

    Whose name is not safe as it is, or is another student's but for capital letters, gets a suffix made of the name as
    it was. Only capital letters make a difference when others hand in something. Of names in a list, which is known as
    a whole, only those that are alike get a suffix, made of `marks`. Names that are `taken` stay.
    """
    students = list(students)
    plain = [_plain(student) for student in students]
    if marks is None:
        plain = [(one[0], one == (name, True)) for one, name in zip(plain, students, strict=True)]
    times = Counter(name.casefold() for name in [*taken, *(name for name, _ in plain)])
    used = {name.casefold() for name in taken}
    names: list[str] = []
    for (name, is_whole), mark in zip(plain, students if marks is None else marks, strict=True):
        marked = name if is_whole and times[name.casefold()] == 1 else _marked(name, mark)
        number, unlike = 2, marked
        while unlike.casefold() in used:  # of two with one name and one mark
            unlike, number = f"{marked}_{number}", number + 1
        used.add(unlike.casefold())
        names.append(unlike)
    return names


def forms(student: str) -> tuple[str, str]:
    """What a student may be called here: with a suffix, and without one."""
    name, _ = _plain(student)
    return _marked(name, student), name


def suffixed(name: str, students: Iterable[str]) -> list[str]:
    """Who has this name with a suffix."""
    return [student for student in students if re.fullmatch(re.escape(name) + "_[0-9a-f]{6}", student)]


def _plain(student: str) -> tuple[str, bool]:
    """A name that is safe, and whether it may stand for itself."""
    characters, size = MAX_NAME
    safe = re.sub(r"[^\w.@ +-]", "_", student)
    cut = safe[:characters].encode()[:size].decode(errors="ignore")
    plain = re.sub(r"^[^\w]", "_", cut.strip(". ") or "student")
    return plain, cut == safe and not OURS.fullmatch(plain)


def _marked(name: str, mark: str) -> str:
    return f"{name}_{hashlib.sha256(mark.encode('utf-8', 'surrogateescape')).hexdigest()[:6]}"
