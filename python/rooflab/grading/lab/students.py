"""A lab read from a student's notebook: its public half."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rooflab.grading.lab.model import (
    MARGIN_STUB,
    TO_WRITE,
    Cell,
    Lab,
    LabError,
    find_notebooks,
    marks,
    read_cell,
    read_notebook,
)
from rooflab.grading.lab.names import bound_names, loaded_names
from rooflab.grading.lab.printable import printable
from rooflab.grading.lab.release import is_in_range
from rooflab.grading.lab.repair import keys

UNWRITTEN_CODE = re.compile(rf"{TO_WRITE}|(\bNone\b|\[\]|\{{\}}).*\s*{MARGIN_STUB}")


def from_notebook(path: Path) -> Lab:
    """The public half of a lab, from its student notebook, without the student's own cells and duplicates. Answers are
    as in the notebook that this package hands out, if it has the lab, and so are tests that have been emptied. If a
    program left out all metadata, the lab is known by its texts.
    """
    lab = _own(path)
    if not lab.questions:
        return by_text(path, map(_own, find_notebooks())) or lab
    known = handed_out(lab.name)

    def whole(cell: Cell) -> Cell:
        handed = known.get(cell.key)
        if handed and not cell.locked:
            return replace(cell, public=handed.source)
        if cell.role == "test" and is_empty(cell.source):  # it would pass, and nobody is handed an empty test
            if not handed:
                raise LabError(f"{path.name}: the test {cell.key} is empty. Copy it from the notebook as you got it.")
            return replace(cell, source=handed.source, public=handed.public)
        return cell

    return replace(lab, cells=tuple(map(whole, lab.cells)))


def by_text(path: Path, known: Iterable[Lab]) -> Lab | None:
    """Of some labs the one whose tests a notebook holds, if it holds any."""
    raw, best, most = read_notebook(path).cells, None, 0
    for lab in known:
        held = {key for key in keys(lab.cells, raw) if key is not None}
        count = sum(cell.role == "test" and cell.key in held for cell in lab.cells)
        best, most = (lab, count) if count > most else (best, most)
    return best


def handed_out(name: str) -> dict[str, Cell]:
    """The cells of a lab as this package hands them out, by their keys; none if it does not have the lab."""
    of_lab = [path for path in find_notebooks() if path.stem.split("_")[0] == name]
    return {cell.key: cell for path in of_lab[-1:] for cell in _own(path).cells}


def edited_tests(lab: Lab) -> list[str]:
    """The keys of the tests that are not as this package hands them out.

    Examples
    --------
    >>> edited_tests(from_notebook(find_notebooks()[0]))
    []
    """
    known = handed_out(lab.name)
    tests = [cell for cell in lab.cells if cell.role == "test" and cell.key in known]
    return [cell.key for cell in tests if cell.source.split() != known[cell.key].source.split()]


def is_empty(source: str) -> bool:
    """Whether code has nothing to run: no line, or comments alone."""
    return all(line.lstrip().startswith("#") for line in source.splitlines() if line.strip())


def _own(path: Path) -> Lab:
    """The lab, from the notebook alone."""
    notebook = read_notebook(path)
    copies: dict[str, list[Any]] = {}
    for raw in notebook.cells:
        if isinstance(key := marks(raw).get("grade_id"), str):
            copies.setdefault(key, []).append(raw)
    cells: dict[str, Cell] = {}
    for key, found in copies.items():
        code = next((raw for raw in found if raw.cell_type == "code"), found[0])
        is_prose = marks(found[0]).get("grade") and marks(found[0]).get("solution")
        try:
            cell = read_cell(found[0] if is_prose else code, path.name, cells.keys())
            _check(cell)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise LabError(f"{path.name}: the metadata of cell {printable(key)[:40]} are damaged.") from None
        cells[key] = cell
    own = [raw.source for raw in notebook.cells if raw.cell_type == "code" and "grade_id" not in marks(raw)]
    for key, cell in cells.items():
        if not cell.locked:
            sources = [raw.source for raw in copies[key]]
            cells[key] = replace(cell, public=_handed_out(cell, sources, own, cells.values()))
    about = notebook.metadata.get("rooflab")
    name = about.get("lab") if isinstance(about, dict) else None
    return Lab(name if isinstance(name, str) else path.stem.split("_")[0], path.stem, tuple(cells.values()))


def _check(cell: Cell) -> None:
    """Raise ValueError or TypeError for points, limits or needs that no lab gives."""
    if not is_in_range(cell):
        raise ValueError
    "".join(cell.options.get("needs", ()))


def _handed_out(cell: Cell, copies: list[str], own: list[str], cells: Collection[Cell]) -> str:
    """An answer as it may have been handed out: a copy that is not written yet, or else the names that its tests use of
    those that its copies and the student's `own` cells bind.
    """
    if cell.role == "prose":
        return cell.public if len(set(copies)) == 1 else ""
    sources = [source for source in dict.fromkeys(copies) if bound_names(source)]
    for source in sources:
        others = set().union(*(bound_names(one) for one in sources if one != source))
        if UNWRITTEN_CODE.search(source) and (len(sources) == 1 or bound_names(source) <= others):
            return source
    names = set().union(*map(bound_names, [*copies, *own]))
    names -= set().union(*(bound_names(one.source) for one in cells if one.role == "setup"))
    tests = [one for one in cells if one.role == "test"]
    tests = [one for one in tests if cell.question in (one.question, *one.options.get("needs", ()))]
    names &= set().union(*(loaded_names(one.source) for one in tests))
    return "\n".join(f"{name} = None" for name in sorted(names))
