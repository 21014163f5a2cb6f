"""Who handed in the very same notebook; and what each student wrote as one Python file, for a tool that looks for
similar answers.

Below the folder, `students` has one file per student: the answers that differ from what the lab handed out, and the
cells that the student added, because answers may use them. `handed_out` has the code that everybody got, for the tool
to leave out.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from rooflab.files import is_full, replacing
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import Cell, Lab, LabError, first_line, label, read_notebook
from rooflab.grading.lab.repair import read_submission


def noted(lab: Lab, handed: Sequence[Handed]) -> tuple[list[Handed], list[str]]:
    """The students, with a note for each whose notebook came from another student too, and a sentence about each such
    notebook. What cells show does not matter. A notebook without an answer, and one that a group handed in together, is
    none of them.
    """
    alike: dict[bytes, list[Handed]] = {}
    for one in handed:
        with contextlib.suppress(Exception):  # grading it says why it cannot be read
            if one.path:
                alike.setdefault(_content(one.path), []).append(one)
    notes, said = dict[str, str](), list[str]()
    for ours in alike.values():
        paths = {one.path for one in ours if one.path}
        if len(paths) == 1 or not (written := read_submission(lab, min(paths)).written):
            continue
        for one in ours:
            others = [other.student for other in ours if other.path != one.path]
            notes[one.student] = f"The same notebook came from {_listed(others)}."
        answers = "1 answer" if written == 1 else f"{written} answers"
        said.append(f"The same notebook came from {_listed([one.student for one in ours])}, with {answers}.")
    return [replace(one, note=" ".join(filter(None, [one.note, notes.get(one.student)]))) for one in handed], said


def _content(path: Path) -> bytes:
    """A hash of the cells' texts."""
    text = repr([(cell["cell_type"], cell["source"]) for cell in read_notebook(path)["cells"]])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def write(folder: Path, lab: Lab, handed: Iterable[Handed]) -> tuple[int, list[str]]:
    """Write the files, and remove those of students who are there no longer. Returns how many students have one, and
    a sentence for each whose answers cannot be compared, although the table of grades may not say so.
    """
    students, handed_out = folder / "students", folder / "handed_out"
    for place in (students, handed_out):
        place.mkdir(parents=True, exist_ok=True)
    _write(handed_out / f"{lab.stem}.py", [cell for cell in lab.cells if cell.kind == "code"], public=True)
    given = {cell.public.strip() for cell in lab.cells}
    written, left_out = set(), []
    for one in handed:
        try:
            cells = read_submission(lab, one.path).cells if one.path else []
            if theirs := [cell for cell in cells if not cell.locked and cell.kind == "code" and _is_own(cell, given)]:
                _write(students / f"{one.student}.py", theirs)
                written.add(f"{one.student}.py")
        except LabError:
            continue  # the table of grades says why
        except Exception as error:
            if is_full(error):
                raise
            left_out.append(f"The answers of {one.student} cannot be compared: {first_line(error)}.")
    for path in students.glob("*.py"):
        if path.name not in written:
            path.unlink()
    return len(written), left_out


def _is_own(cell: Cell, given: set[str]) -> bool:
    return bool(cell.source.strip()) and cell.source.strip() not in given


def _write(path: Path, cells: list[Cell], public: bool = False) -> None:
    """Write the cells with the labels of their questions. A tool finds these in `handed_out` too, and ignores them."""
    parts = [
        f"# {label(cell.question)}\n{as_python(cell.public if public else cell.source).strip()}\n" for cell in cells
    ]
    with replacing(path) as unfinished:
        unfinished.write_text("\n".join(parts), encoding="utf-8", errors="replace")
