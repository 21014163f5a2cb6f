"""A student's notebook put back into the master's shape: the master's cells in order, the student's answers
in their places.

Locked cells always come from the master; answers are found by grade_id, else by cell id. Cells that the
student added stay behind the cell they stood behind and belong to its question. Every repair is listed
in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import Cell, Lab, bound_names, label, marks, read_notebook
from rooflab.grading.lab.printable import printable
from rooflab.grading.lab.release import metadata


@dataclass(frozen=True)
class Submission:
    """The repaired cells in order, the raw notebook cells beside them (None: not in the student's file),
    the repairs.
    """

    cells: list[Cell]
    raw: list[Any]
    repairs: list[str]

    @property
    def findings(self) -> dict[str, str]:
        """What the student wrote in prose, by question."""
        prose = [cell for cell in self.cells if cell.role == "prose" and cell.source.strip() != cell.public.strip()]
        return {label(cell.question): cell.source.strip() for cell in prose}


def reference(lab: Lab) -> Submission:
    """The master itself, as if a student had written it."""
    return Submission(list(lab.cells), [None] * len(lab.cells), [])


def read_submission(lab: Lab, path: Path) -> Submission:
    """The repaired notebook in `path`. Raises LabError when it is not a notebook at all."""
    return repair(lab, read_notebook(path)["cells"])


def repair(lab: Lab, submitted: list[Any]) -> Submission:
    """Match `submitted` raw cells to the master."""
    master = {cell.key: cell for cell in lab.cells}
    repairs: list[str] = []
    found: dict[str, list[Any]] = {}
    extras: dict[str, list[Any]] = {}
    order: list[str] = []
    anchor = ""
    for raw in submitted:
        key = _key(raw, master)
        if key is None:
            extras.setdefault(anchor, []).append(raw)
            if marks(raw).get("grade") or "points" in marks(raw):
                repairs.append("A cell that the student added claimed points; it has none.")
            continue
        anchor = key
        if key not in found:
            order.append(key)
        found.setdefault(key, []).append(raw)

    for key, cell in master.items():
        if cell.role == "solution" and key not in found and (raw := _elsewhere(cell, master, found, extras)):
            found[key] = [raw]
            repairs.append(f"{_what(cell)} {key} was found in another cell.")

    positions = {key: index for index, key in enumerate(master)}
    if [positions[key] for key in order] != sorted(positions[key] for key in order):
        repairs.append("Cells were out of order; the order was restored.")
    cells: list[Cell] = []
    raws: list[Any] = []
    _append_extras(extras.get("", []), "", cells, raws)
    for key, cell in master.items():
        raw = None if cell.hidden else _choose(cell, found.get(key, []), repairs)
        kept = not cell.locked and raw is not None
        cells.append(replace(cell, source=str(raw["source"])) if kept else _untouched(cell))
        raws.append(raw)
        _append_extras(extras.get(key, []), cell.question, cells, raws)
    return Submission(cells, raws, repairs)


def _untouched(cell: Cell) -> Cell:
    """A locked cell whole, hidden tests included; an answer that is missing as its stub."""
    return cell if cell.locked else replace(cell, source=cell.public)


def _choose(cell: Cell, candidates: list[Any], repairs: list[str]) -> Any:
    """The student's version of a master cell; says what is wrong with it."""
    name = f"{_what(cell)} {cell.key}" if cell.question else f"A {_what(cell)} cell"
    if not candidates:
        repairs.append(f"{name} was missing; it was restored." if cell.locked else f"{name} is missing: not answered.")
        return None
    raw = candidates[0]
    if len(candidates) > 1:
        changed = [one for one in candidates if one["source"].strip() != cell.public.strip()]
        raw = changed[0] if changed and not cell.locked else raw
        repairs.append(f"{name} was there {len(candidates)} times; one was kept.")
    if raw.get("cell_type") != cell.kind:
        repairs.append(
            f"{name} had become a {raw.get('cell_type')} cell; it was " + ("restored." if cell.locked else "dropped.")
        )
        return None
    if cell.locked and raw["source"].strip() != cell.public.strip():
        repairs.append(f"{name} differs from this release; the cell of this release was used.")
    expected = metadata(cell)["nbgrader"]
    found = marks(raw)
    if found and any(found.get(field) != value for field, value in expected.items() if field != "schema_version"):
        points = found.get("points", cell.points)
        stated = f" (points {printable(str(points))[:20]} instead of {cell.points})" if points != cell.points else ""
        repairs.append(f"{name} has metadata that differ from this release{stated}; those of this release were used.")
    return raw


def _elsewhere(cell: Cell, master: dict[str, Cell], found: dict[str, list], extras: dict[str, list]) -> Any:
    """A student's cell that defines what this answer has to define: one that lost its marks, or another answer."""
    names = bound_names(cell.public)
    for cells in extras.values():
        for raw in cells:
            if names and raw.get("cell_type") == "code" and names <= bound_names(as_python(raw["source"])):
                cells.remove(raw)
                return raw
    answers = (one for key, cells in found.items() if master[key].role == "solution" for one in cells)
    return next((raw for raw in answers if names and names <= bound_names(as_python(raw["source"]))), None)


def _append_extras(extras: list[Any], question: str, cells: list[Cell], raws: list[Any]) -> None:
    for raw in extras:
        role = "extra" if raw.get("cell_type") == "code" else "text"
        cells.append(Cell(f"extra-{len(cells)}", role, str(raw["source"]), str(raw["source"]), question))
        raws.append(raw)


def _key(raw: Any, master: dict[str, Cell]) -> str | None:
    for key in (marks(raw).get("grade_id"), raw.get("id")):
        if isinstance(key, str) and key in master:
            return key
    return None


def _what(cell: Cell) -> str:
    kinds = {"test": "Test", "solution": "Answer", "prose": "Prose answer"}
    return (
        kinds.get(cell.role, cell.role) if cell.question else {"text": "text", "setup": "setup"}.get(cell.role, "given")
    )


def as_notebook(submission: Submission) -> Any:
    """The repaired notebook, public parts only, with the outputs of the student's file."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells = []
    for index, (cell, raw) in enumerate(zip(submission.cells, submission.raw, strict=True)):
        text = cell.public if cell.locked else cell.source
        if cell.kind == "markdown":
            cells.append(new_markdown_cell(text, id=f"cell-{index}"))
        else:
            outputs = raw.get("outputs", []) if isinstance(raw, dict) else []
            cells.append(new_code_cell(text, id=f"cell-{index}", outputs=outputs))
    return new_notebook(cells=cells)
