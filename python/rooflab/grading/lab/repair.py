"""A student's notebook put back into the master's shape: the master's cells in order, the student's answers
in their places.

One rule says what a student has answered, behind every door:

- Locked cells come from the master. Answers are found by grade_id, by cell id, by their text, or by what they define.
- Of several cells of an answer, those of its type count. They run one after the other, as in Jupyter, so the last
  definition counts. A cell that is as it was handed out does not count beside one that was written.
- Text that a student added to a question with a written answer belongs to that answer. If the cell of the answer is not
  found, text in its place is the answer, whatever stands around it.
- Other cells that the student added stay behind the cell they stood behind, and belong to its question.

Every repair is listed in one sentence.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import rooflab
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import Cell, Lab, has_marker, label, marks, read_notebook
from rooflab.grading.lab.names import bound_names
from rooflab.grading.lab.printable import printable
from rooflab.grading.lab.release import metadata

ATTACHED = re.compile(r"attachment:([^\s)\"'>]*)")
VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,3}")
PICTURES = ("image/png", "image/jpeg", "image/gif")


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
        found: dict[str, list[str]] = {}
        for cell in self.cells:
            if cell.role == "prose" and not is_unwritten(cell, cell.source):
                found.setdefault(label(cell.question), []).append(cell.source.strip())
        return {question: "\n\n".join(texts) for question, texts in found.items()}

    @property
    def written(self) -> int:
        """How many answers the student wrote."""
        answers = [cell for cell in self.cells if cell.role in ("solution", "prose")]
        return len({cell.key for cell in answers if not is_unwritten(cell, cell.source)})


def reference(lab: Lab) -> Submission:
    """The master itself, as if a student had written it."""
    return Submission(list(lab.cells), [None] * len(lab.cells), [])


def read_submission(lab: Lab, path: Path) -> Submission:
    """The repaired notebook in `path`. Raises LabError when it is not a notebook at all."""
    notebook = read_notebook(path)
    submission = repair(lab, notebook["cells"])
    return replace(submission, repairs=[*_of_another_version(notebook), *submission.repairs])


def _of_another_version(notebook: Any) -> list[str]:
    """A sentence about a notebook that another version of rooflab made."""
    about = notebook.metadata.get("rooflab")
    version = about.get("version") if isinstance(about, dict) else None
    if not isinstance(version, str) or not VERSION.fullmatch(version) or version == rooflab.__version__:
        return []
    return [
        f"The notebook is of rooflab {version}, and {rooflab.__version__} grades it. If CHANGES lists a count as "
        "changed in between, the new count is right."
    ]


def repair(lab: Lab, submitted: list[Any]) -> Submission:
    """Match `submitted` raw cells to the master."""
    return _Repair(lab, submitted).done()


def is_unwritten(cell: Cell, source: str) -> bool:
    """Whether the text of an answer is empty, or as it was handed out but for its comments and its layout."""
    text, public = source.strip(), cell.public.strip()
    if cell.kind == "markdown" or not text:
        return text in ("", public)
    tree = _tree(text)
    return tree == _tree("") or (has_marker(public) and (text == public or tree == _tree(public) != ""))


def _tree(source: str) -> str:
    """A cell's code without comments and layout; empty if it is not Python."""
    try:
        return ast.dump(ast.parse(as_python(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def keys(cells: Sequence[Cell], submitted: list[Any]) -> list[str | None]:
    """The key of each raw cell: that of its marks, its id, or the cell of the master with its very text."""
    known, times = {cell.key for cell in cells}, Counter(cell.public.strip() for cell in cells)
    texts = {text: cell.key for cell in cells if times[text := cell.public.strip()] == 1 and text}
    named = (
        (marks(raw).get("grade_id"), raw.get("id"), "grade_id" not in marks(raw) and texts.get(raw["source"].strip()))
        for raw in submitted
    )
    return [next((one for one in names if isinstance(one, str) and one in known), None) for names in named]


class _Repair:
    """The cells of one notebook by their indices.

    `places` has the cell that stands where a cell of the master stood, `answers` those of an answer that count, and
    `moved` the answers that were found in a cell that is not marked as theirs.
    """

    def __init__(self, lab: Lab, submitted: list[Any]) -> None:
        self.lab, self.raw = lab, submitted
        self.master = {cell.key: cell for cell in lab.cells}
        self.keys = keys(lab.cells, submitted)
        self.unwritten = {"", *(cell.public.strip() for cell in lab.cells)}
        self.found: dict[str, list[int]] = {key: [] for key in self.master}
        for index, key in enumerate(self.keys):
            if key is not None:
                self.found[key].append(index)
        self.questions = self._questions()
        self.places = {key: place for key in self.master if (place := self._place(key)) is not None}
        self.answers = {key: self._answer(cell) for key, cell in self.master.items() if not cell.locked}
        self.moved: dict[int, list[str]] = {}
        for key in [key for key, indices in self.answers.items() if not indices]:
            for index in self._elsewhere(self.master[key]):
                self.moved.setdefault(index, []).append(key)

    def done(self) -> Submission:
        repairs = self._claims()
        in_place = {index: key for key, index in self.places.items()}
        order = [in_place[index] for index in sorted(in_place)]
        if order != [key for key in self.master if key in self.places]:
            repairs.append("Cells were out of order; the order was restored.")
        behind: dict[str, list[int]] = {}
        anchor = ""
        for index in range(len(self.raw)):
            anchor = in_place.get(index, anchor)
            behind.setdefault(anchor, []).append(index)
        cells: list[tuple[Cell, Any]] = []
        for key in ("", *self.master):
            if key:
                repairs += self._said(self.master[key])
                if key not in self.places and not self._is_answered(key):
                    cells.append((_untouched(self.master[key]), None))
            for index in behind.get(key, ()):
                cells += [(cell, self.raw[index]) for cell in self._cells(index, f"extra-{len(cells)}")]
        return Submission([cell for cell, _ in cells], [raw for _, raw in cells], repairs)

    def _cells(self, index: int, name: str) -> list[Cell]:
        """What a raw cell becomes: a cell of the master, an answer, a cell of the student's own, or nothing."""
        key, source = self.keys[index], str(self.raw[index]["source"])
        moved = [replace(self.master[one], source=source) for one in self.moved.get(index, ())]
        cell = self.master[key] if key is not None else None
        if cell and self._fits(cell, index):
            if cell.locked and self.places.get(cell.key) == index:
                return [cell]
            if not cell.locked:
                kept = index in self.answers[cell.key]
                kept = kept or (self.places[cell.key] == index and not self._is_answered(cell.key))
                return [replace(cell, source=source)] * kept + moved
        if cell and cell.locked and not self._is_own(cell, index):
            return []
        if moved and self.master[self.moved[index][0]].role == "prose":
            return moved
        if self.raw[index].get("cell_type") == "code":
            return moved or [Cell(name, "extra", source, source, self.questions[index])]
        asked = any(one.role == "prose" and one.question == self.questions[index] for one in self.lab.cells)
        if asked and source.strip() not in self.unwritten:
            return [Cell(name, "prose", source, "", self.questions[index])]
        return [Cell(name, "text", source, source, self.questions[index])]

    def _fits(self, cell: Cell, index: int) -> bool:
        """Whether a raw cell has the type of a cell of the master. Prose is prose in any cell."""
        return cell.role == "prose" or self.raw[index].get("cell_type") == cell.kind

    def _is_own(self, cell: Cell, index: int) -> bool:
        """Whether another cell with the marks of a locked one holds something of the student's own."""
        source, lines = str(self.raw[index]["source"]), {line.strip() for line in cell.public.split("\n")}
        own = any(line.strip() not in lines for line in source.split("\n"))
        return own and (self.raw[index].get("cell_type") != "code" or bool(_bound(source)))

    def _questions(self) -> list[str]:
        """The question that each raw cell belongs to: that of the marked cell before it. If that has none, text may
        also stand above the first cell of its question.
        """
        found, below = [""] * len(self.raw), ""
        for index in reversed(range(len(self.raw))):
            if (key := self.keys[index]) is not None:
                below = self.master[key].question
            found[index] = below if self.raw[index].get("cell_type") != "code" else ""
        before = ""
        for index, key in enumerate(self.keys):
            before = self.master[key].question if key is not None else before
            found[index] = before or (found[index] if key is None else "")
        return found

    def _place(self, key: str) -> int | None:
        """The raw cell that stands for a cell of the master."""
        cell = self.master[key]
        fitting = [index for index in self.found[key] if self._fits(cell, index)]
        same = [index for index in fitting if cell.locked and self.raw[index]["source"].strip() == cell.public.strip()]
        return next(iter([*same, *fitting]), None)

    def _answer(self, cell: Cell) -> list[int]:
        """The raw cells of an answer that count, without copies of each other if they are all the same."""
        theirs = [index for index in self.found[cell.key] if self._fits(cell, index)]
        written = [index for index in theirs if not is_unwritten(cell, str(self.raw[index]["source"]))]
        return written if len({self.raw[index]["source"].strip() for index in written}) > 1 else written[:1]

    def _is_answered(self, key: str) -> bool:
        return bool(self.answers.get(key)) or any(key in moved for moved in self.moved.values())

    def _elsewhere(self, cell: Cell) -> list[int]:
        """The student's cells that define what an answer has to define: cells that lost their marks, or one of another
        answer. Of a written answer, the text in its place.
        """
        if cell.role == "prose":
            return self._in_place_of(cell)
        names = bound_names(cell.public) if cell.role == "solution" else set()
        sources = [str(raw["source"]) if raw.get("cell_type") == "code" else "" for raw in self.raw]
        own = [i for i, key in enumerate(self.keys) if key is None and names & _bound(sources[i])]
        own = [index for index in own if not is_unwritten(cell, sources[index])]
        if names and names <= set().union(*(_bound(sources[index]) for index in own)):
            return own
        others = [i for key, indices in self.answers.items() if self.master[key].role == "solution" for i in indices]
        return [index for index in others if names and names <= _bound(sources[index])][-1:]

    def _in_place_of(self, cell: Cell) -> list[int]:
        """The student's text between the last cell of the lab that stands before a written answer, and the next one."""
        order = {key: place for place, key in enumerate(self.master)}
        before, between, found = -1, list[int](), list[int]()
        for index, key in enumerate([*self.keys, ""]):
            if key is None:
                between.append(index)
                continue
            if before < order[cell.key] < (after := order.get(key, len(order))):
                found += between
            before, between = after, []
        texts = {index: str(self.raw[index]["source"]).strip() for index in found if index not in self.moved}
        return [
            index
            for index, text in texts.items()
            if text not in self.unwritten and self.raw[index].get("cell_type") != "code"
        ]

    def _claims(self) -> list[str]:
        claimed = [raw for raw, key in zip(self.raw, self.keys, strict=True) if key is None and marks(raw)]
        claimed = [raw for raw in claimed if marks(raw).get("grade") or "points" in marks(raw)]
        return ["A cell that the student added claimed points; it has none."] * len(claimed)

    def _said(self, cell: Cell) -> list[str]:
        """What was repaired about a cell of the master, and which of its copies were taken."""
        if cell.hidden:
            return []
        name = f"{_what(cell)} {cell.key}" if cell.question else f"A {_what(cell)} cell"
        found, place, said = self.found[cell.key], self.places.get(cell.key), []
        if not cell.locked and not self.answers[cell.key] and self._is_answered(cell.key):
            said.append(f"{name} was found in another cell.")
        elif not found:
            said.append(f"{name} was missing; it was restored." if cell.locked else f"{name} is missing: not answered.")
        others = [str(self.raw[index].get("cell_type")) for index in found if not self._fits(cell, index)]
        for other in dict.fromkeys(printable(one)[:20] for one in others):
            if place is not None:
                said.append(f"A {other} copy of {name} does not count.")
            else:
                ends = "it was restored." if cell.locked else "it was dropped. Make it a code cell to have it graded."
                said.append(f"{name} had become a {other} cell; {ends}")
        said += self._copies(cell, name)
        if place is None:
            return said
        if cell.locked and self.raw[place]["source"].strip() != cell.public.strip():
            said.append(f"{name} differs from this release; the cell of this release was used.")
        return said + self._metadata(cell, name, marks(self.raw[place]))

    def _copies(self, cell: Cell, name: str) -> list[str]:
        """Which of several cells were taken."""
        found = [index for index in self.found[cell.key] if self._fits(cell, index)]
        if cell.locked or len(self.answers[cell.key]) == 0:
            return [f"{name} was there {len(found)} times; one was kept."] * (len(found) > 1)
        sources, said = {index: str(self.raw[index]["source"]) for index in found}, []
        unwritten = [index for index in found if is_unwritten(cell, sources[index])]
        taken = len(self.answers[cell.key])
        if taken == 1 and (same := len(found) - len(unwritten)) > 1:
            said.append(f"{name} was there {same} times; one was kept.")
        if unwritten:
            said.append(f"{name} is also there as it was handed out; that copy does not count.")
        if cell.role == "prose":
            return said + [f"{name} is in {taken} cells; all of them were taken."] * (taken > 1)
        taken += sum(
            key is None and self.questions[index] == cell.question and index not in self.moved
            and self.raw[index].get("cell_type") == "code"
            and bool(_bound(str(self.raw[index]["source"])) & bound_names(cell.public))
            for index, key in enumerate(self.keys)
        )  # fmt: skip
        ran = f"{name} is in {taken} cells; they were run one after the other, and the last definition counts."
        return said + [ran] * (taken > 1)

    def _metadata(self, cell: Cell, name: str, found: dict) -> list[str]:
        expected = metadata(cell)["nbgrader"]
        if not found or all(
            found.get(field) == value for field, value in expected.items() if field != "schema_version"
        ):
            return []
        points = found.get("points", cell.points)
        stated = f" (points {printable(str(points))[:20]} instead of {cell.points})" if points != cell.points else ""
        return [f"{name} has metadata that differ from this release{stated}; those of this release were used."]


def _bound(source: str) -> set[str]:
    return bound_names(as_python(source))


def _untouched(cell: Cell) -> Cell:
    """A locked cell whole, hidden tests included; an answer that is missing as its stub."""
    return cell if cell.locked else replace(cell, source=cell.public)


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
            text, pictures = _pictures(text, raw)
            cells.append(new_markdown_cell(text, id=f"cell-{index}", attachments=pictures))
        else:
            cells.append(new_code_cell(text, id=f"cell-{index}"))
    made = new_notebook(cells=cells)
    for new, raw in zip(made.cells, submission.raw, strict=True):
        if new.cell_type == "code" and isinstance(raw, dict):
            new.outputs = raw.get("outputs", [])  # last, because nbformat makes no notebook with a damaged one
    return made


def _pictures(text: str, raw: Any) -> tuple[str, dict[str, dict[str, str]]]:
    """A cell's text, and the pictures that were pasted into it. One that is not there becomes a dead link, because
    nbconvert makes no page of a notebook that lacks it.
    """
    pasted = raw.get("attachments") if isinstance(raw, dict) else None
    pictures: dict[str, dict[str, str]] = {}
    for name, data in pasted.items() if isinstance(pasted, dict) else ():
        known = {kind: data[kind] for kind in PICTURES if isinstance(data, dict) and isinstance(data.get(kind), str)}
        pictures |= {name: known} if known else {}

    used: dict[str, dict[str, str]] = {}

    def link(found: re.Match[str]) -> str:
        if (picture := pictures.get(unquote(found[1]))) is None:
            return f"missing:{found[1]}"
        used[found[1]] = picture
        return found[0]

    return ATTACHED.sub(link, text), used
