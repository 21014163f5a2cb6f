"""A lab as a list of cells, read from its source. `students` reads one from its student notebook.

The source is a folder `labN` of parts in jupytext's percent format, see `release`. Errors that a user can fix are
`LabError`, one sentence each.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from rooflab.files import readable
from rooflab.grading.lab import parts, titles
from rooflab.grading.lab.errors import LabError as LabError
from rooflab.grading.lab.names import bound_names

GRADE_ID = re.compile(r"(?P<question>[qb]\d+(?:_\d+)*[a-z]?)(?:_[a-z]\w*)?")
POINTS = re.compile(r"\{points ([qb]\w+(?: [qb]\w+)*)\}")
BY_HAND = re.compile(r"^#.*\((\d+) points?, (?:graded )?by hand\)", re.MULTILINE)
SOLUTION = ("### BEGIN SOLUTION", "### END SOLUTION")
HIDDEN = ("### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")
STUB = 'raise NotImplementedError("Question {}: write your code here")'
UNWRITTEN = re.compile(r"NotImplementedError: Question [\w.]+: write your code here(?: \(line \d+ of (\w+)\))?")
MARGIN_STUB, TO_WRITE = "# your code here", "write your code here"
SOURCES = "notebooks/source"
MAX_NOTEBOOK_BYTES = 2**26
MAX_FILE_BYTES, MAX_MARKS = 2**28, 2**24  # before outputs are left out; quotes and brackets, as each takes memory
MAX_PARTS = 2**18  # objects and lists: those of a usual notebook, with its outputs, are a tenth of that
KEPT = ("nbgrader", "rooflab", "tags", "kernelspec", "language_info")  # of the metadata of a notebook that has more
CLEAR = "clear its outputs and save it again."
MAX_CELLS, MAX_SOURCE = 2000, 500_000
PACKAGED = Path(__file__).parents[2] / "labs" / "notebooks"


@dataclass(frozen=True)
class Cell:
    """One cell. `role` is text, prose, setup, given, solution, test or (a student's own cell) extra."""

    key: str
    role: str
    source: str
    public: str
    question: str = ""
    points: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "markdown" if self.role in ("text", "prose") else "code"

    @property
    def locked(self) -> bool:
        """Whether the student must leave it as it is."""
        return self.role not in ("solution", "prose", "extra")

    @property
    def hidden(self) -> bool:
        """Whether all of its lines are hidden, so that students get no such cell."""
        return bool(self.source) and not self.public


@dataclass(frozen=True)
class Limits:
    """What one question may use: wall time in seconds, memory in GB (1e9 bytes)."""

    seconds: float = 60.0
    memory_gb: float = 4.0


@dataclass(frozen=True)
class Lab:
    """A lab: its short name, the name of its notebook, its cells in order; the folder of its parts if it has one."""

    name: str
    stem: str
    cells: tuple[Cell, ...]
    folder: Path | None = field(default=None, compare=False)

    @property
    def points(self) -> int:
        """The points of the tests of all questions together, without bonus questions."""
        return sum(cell.points for cell in self.cells if cell.question.startswith("q"))

    @property
    def bonus(self) -> int:
        return sum(cell.points for cell in self.cells if cell.question.startswith("b"))

    @property
    def by_hand(self) -> int:
        """The points that instructors give for answers in words, as headings state them: `(10 points, by hand)`."""
        texts = (cell.source for cell in self.cells if cell.role == "text")
        return sum(int(points) for text in texts for points in BY_HAND.findall(text))

    @cached_property
    def title(self) -> str:
        heading = next((re.match(r"# (.+)", cell.source) for cell in self.cells if cell.role == "text"), None)
        return heading[1].strip() if heading else self.name

    @cached_property
    def questions(self) -> list[str]:
        """Questions that have tests, in order."""
        return list(dict.fromkeys(cell.question for cell in self.cells if cell.role == "test"))

    def student_names(self, question: str) -> frozenset[str]:
        """Names that the public parts of a question's answers, and of those it needs, bind: its tests may use them."""
        answers = [cell for cell in self.cells if cell.role == "solution" and cell.question in self.needs(question)]
        return frozenset().union(*(bound_names(cell.public) for cell in answers))

    def tests(self, question: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.role == "test" and cell.question == question]

    def limits(self, question: str) -> Limits:
        """The largest limits that the question's test cells ask for."""
        options = [cell.options for cell in self.tests(question)]
        return Limits(
            seconds=max(float(o.get("seconds", Limits.seconds)) for o in options),
            memory_gb=max(float(o.get("memory_gb", Limits.memory_gb)) for o in options),
        )

    def counts(self, question: str) -> bool:
        """Whether answers to the question may use the library's counters; an answer's cell says if not."""
        return all(cell.options.get("counters", True) for cell in self.cells if cell.question == question)

    def needs(self, question: str) -> set[str]:
        """The question and all questions whose answers it builds on."""
        found: set[str] = set()
        todo = [question]
        while todo:
            if (one := todo.pop()) not in found:
                found.add(one)
                todo += [need for cell in self.tests(one) for need in cell.options.get("needs", ())]
        return found


def label(question: str) -> str:
    """`q1_3` -> `1.3`, `q1_1_3a` -> `1.1.3a`, `b3_1` -> `b3.1`."""
    return question.removeprefix("q").replace("_", ".")


def named(key: str) -> str:
    """An answer or a test as the notebook's titles name it: `q1_3_backward_test` -> `1.3, backward`."""
    found = GRADE_ID.fullmatch(key)
    question = found["question"] if found else key
    part = key.removeprefix(question).removesuffix("_test").replace("_", " ").strip()
    return f"{label(question)}, {part}" if part else label(question)


def _imported(name: str) -> ModuleType:
    """nbformat or jupytext. jsonschema, which both need, would take 0.7 s to read a grammar of URLs."""
    grammar = "rfc3987_syntax"  # no notebook needs it
    loaded = sys.modules.setdefault(grammar, None)  # type: ignore[arg-type]  # None makes its import fail
    try:
        return importlib.import_module(name)
    finally:
        if loaded is None:
            del sys.modules[grammar]


def from_source(folder: Path) -> Lab:
    """The lab whose parts lie in a folder, joined in the order of their names."""
    stem, raw_cells = parts.read(folder, _imported("jupytext"))
    cells: dict[str, Cell] = {}
    for where, raw in raw_cells:
        cell = read_cell(raw, where, cells.keys())
        cells[cell.key] = cell
    return _with_titles(_with_points(Lab(folder.name, stem, tuple(cells.values()), folder.resolve())))


def has_marker(public: str) -> bool:
    """Whether the text of an answer says that its code has to be written yet."""
    return MARGIN_STUB in public or TO_WRITE in public


def marks(raw: Any) -> dict:
    """nbgrader's metadata of a raw cell. A student can edit them, so they may be anything."""
    meta = raw.get("metadata")
    found = meta.get("nbgrader") if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def public_half(lab: Lab) -> Lab:
    """The lab as its students know it."""
    return replace(lab, cells=tuple(replace(cell, source=cell.public) for cell in lab.cells if not cell.hidden))


def read_notebook(path: Path) -> Any:
    """A notebook of any version as nbformat 4. Raises LabError."""
    nbformat = _imported("nbformat")
    try:
        size = readable(path).stat().st_size
        if size > MAX_FILE_BYTES:
            raise LabError(f"{path.name} is larger than {MAX_FILE_BYTES // 2**20} MiB: {CLEAR}")
        if not size:
            raise LabError(f"{path.name} is empty.")
        content = path.read_bytes()
        text = content.decode(json.detect_encoding(content))
        is_large = size > MAX_NOTEBOOK_BYTES or text.count("{") + text.count("[") > MAX_PARTS
        if is_large and sum(text.count(mark) for mark in '"[{') > MAX_MARKS:
            raise LabError(f"{path.name} has too many outputs: {CLEAR}")
        try:
            text = json.dumps(json.loads(text, object_hook=_lean if is_large else _mended))
        except ValueError:  # also of a number of too many digits
            raise nbformat.reader.NotJSONError from None
        if is_large and len(text) > MAX_NOTEBOOK_BYTES:
            limit = f"{MAX_NOTEBOOK_BYTES // 2**20} MiB without its outputs"
            raise LabError(f"{path.name} is larger than {limit}: shorten its cells and save it again.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at cells without ids or with the same, which nbformat mends
            notebook = nbformat.reads(text, as_version=4)
        cells = notebook["cells"]
        if not all(isinstance(cell, dict) and isinstance(cell.get("source"), str) for cell in cells):
            raise ValueError("it has a cell without a source")
        if len(cells) > MAX_CELLS or any(len(cell["source"]) > MAX_SOURCE for cell in cells):
            raise LabError(
                f"{path.name} has more than {MAX_CELLS} cells, or a cell of more than {MAX_SOURCE} characters."
            )
        for cell in cells:
            cell["source"] = re.sub(r"\r\n?", "\n", cell["source"])  # programs differ in how they end lines
        return notebook
    except LabError:
        raise
    except FileNotFoundError:
        raise LabError(f"There is no file {path.name}.") from None
    except OSError as error:
        raise LabError(f"{path.name or path} cannot be read: {error.strerror}.") from None
    except Exception as error:
        if isinstance(error, (nbformat.reader.NotJSONError, UnicodeDecodeError)):
            why = "it is not JSON"
        elif isinstance(error, (AttributeError, TypeError, KeyError, nbformat.ValidationError)):
            why = "it is JSON without a list of cells, each with a type and a source"
        else:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else first_line(error)
        raise LabError(f"{path.name} is not a notebook: {why}.") from None


def _mended(found: dict[str, Any]) -> dict[str, Any]:
    """A part of a notebook with metadata, outputs and a version as nbformat needs them, where a program lost them."""
    for name, version in (("nbformat", 4), ("nbformat_minor", 5)) if "cells" in found else ():
        found[name] = found[name] if type(found.get(name)) is int else version
    if "cells" in found or "cell_type" in found:
        for name in {"metadata", "attachments"} & {"metadata", *found}:
            found[name] = found[name] if isinstance(found.get(name), dict) else {}
    if "outputs" in found:
        outputs = found["outputs"] if isinstance(found["outputs"], list) else []
        outputs = [one for one in outputs if isinstance(one, dict) and isinstance(one.get("data", {}), dict)]
        found["outputs"] = [one for one in outputs if isinstance(one.get("output_type"), str)]
    return found


def _lean(found: dict[str, Any]) -> dict[str, Any]:
    """A part of a large notebook without what its cells showed, the pictures in its text, and metadata of others."""
    found = _mended(found)
    found.pop("attachments", None)
    if "outputs" in found:
        found["outputs"] = []
    if "cells" in found or "cell_type" in found:
        found["metadata"] = {name: one for name, one in found["metadata"].items() if name in KEPT}
    return found


def find_sources(folder: Path | None) -> list[Path]:
    """Sources of all labs: in `folder`, else in the checkout that this package is run from.

    The working directory is not searched, because students' files may be there, and a made-up lab among them.
    """
    place = folder or Path(__file__).parents[4] / SOURCES
    return [path for path in sorted(place.glob("lab[0-9]*")) if parts.paths(path)]


def find_notebooks() -> list[Path]:
    """Student notebooks of the installed package, else of the checkout."""
    places = [PACKAGED, Path.cwd() / "notebooks", Path(__file__).parents[4] / "notebooks"]
    return next((found for place in places if (found := sorted(place.glob("lab[0-9]*_*.ipynb")))), [])


def pick(paths: list[Path], name: str, where: str) -> Path:
    """The file of lab `name` among `paths`."""
    for path in paths:
        if name in (path.stem, path.stem.split("_")[0]):
            return path
    known = ", ".join(path.stem.split("_")[0] for path in paths)
    raise LabError(f"There is no {name} {where}" + (f" (found: {known})." if known else "."))


def _with_points(lab: Lab) -> Lab:
    """The lab with its points written into its text: `{points q1_2_a_test q1_3}` names test cells or questions."""
    tests = [cell for cell in lab.cells if cell.role == "test"]

    def count(found: re.Match) -> str:
        points = 0
        for name in found[1].split():
            named = sum(cell.points for cell in tests if name in (cell.key, cell.question))
            if not named:
                raise LabError(f"{lab.name}: {found[0]} names {name}, which is no test and no question with tests.")
            points += named
        return _in_words(points, found[1])

    def filled(cell: Cell) -> Cell:
        if cell.role != "text":
            return cell
        return replace(cell, source=POINTS.sub(count, cell.source), public=POINTS.sub(count, cell.public))

    return replace(lab, cells=tuple(filled(cell) for cell in lab.cells))


def _in_words(points: int, question: str) -> str:
    return f"{points} {'bonus ' if question.startswith('b') else ''}{'point' if points == 1 else 'points'}"


def _with_titles(lab: Lab) -> Lab:
    """The lab with a first line in each test cell that says what the cell checks."""
    before: dict[str, list[str]] = {}

    def titled(cell: Cell) -> Cell:
        if cell.role != "test":
            return cell
        earlier = before.setdefault(cell.question, [])
        names = titles.checked(cell.public, earlier, lab.student_names(cell.question))
        line = titles.line(named(cell.key), _in_words(cell.points, cell.question), names)
        earlier.append(cell.public)
        return replace(cell, source=f"{line}\n{cell.source}", public=cell.public and f"{line}\n{cell.public}")

    return replace(lab, cells=tuple(titled(cell) for cell in lab.cells))


def read_cell(raw: Any, where: str, used: Collection[str]) -> Cell:
    """One raw cell, read by its marks; `used` are the keys before it."""
    fields, options = marks(raw), raw.metadata.get("rooflab", {})
    tags = tuple(raw.metadata.get("tags", ()))
    code = raw.cell_type == "code"
    if fields.get("grade") and fields.get("solution") and code:
        raise LabError(f"{where}: a cell is a solution or a test, not both.")
    if fields.get("grade") or fields.get("solution"):
        key = fields["grade_id"]
        found = GRADE_ID.fullmatch(key)
        if not found or key in used:
            raise LabError(
                f"{where}: grade_id {key!r} is " + ("used twice." if found else "not like q1_3 or q1_3_test.")
            )
        question = found["question"]
        role = "prose" if not code else "test" if fields.get("grade") else "solution"
    else:
        digest = hashlib.sha256(raw.source.encode()).hexdigest()[:10]
        key = fields.get("grade_id") or f"cell-{digest}"
        while key in used:
            key += "-again"
        question, role = "", "text" if not code else "setup" if "setup" in tags else "given"
    public = public_part(raw.source, label(question), where, code)
    points = int(fields.get("points", 0)) if role == "test" else 0
    return Cell(key, role, raw.source, public, question, points, dict(options), tags)


def public_part(source: str, question: str, where: str, code: bool = True) -> str:
    """The cell as the student gets it."""
    text = "\n".join(_regions(source, question, where)[0]).strip("\n")
    return text if code else text.replace(MARGIN_STUB, "*Your answer here.*")


def _regions(source: str, question: str, where: str) -> tuple[list[str], list[str]]:
    """Public lines, stubs included, and secret lines."""
    shown, hidden = list[str](), list[str]()
    open_until = ""
    for line in source.split("\n"):
        mark = line.strip()
        if open_until:
            if mark == open_until:
                open_until = ""
            elif mark in (*SOLUTION, *HIDDEN):
                raise LabError(f"{where}: {mark} stands inside another region.")
            else:
                hidden.append(line)
        elif mark in (SOLUTION[0], HIDDEN[0]):
            open_until = SOLUTION[1] if mark == SOLUTION[0] else HIDDEN[1]
            indent = line[: len(line) - len(line.lstrip())]
            if mark == SOLUTION[0]:
                shown.append(indent + STUB.format(question) if indent else MARGIN_STUB)
        elif mark in (SOLUTION[1], HIDDEN[1]):
            raise LabError(f"{where}: {mark} has no matching BEGIN line.")
        else:
            shown.append(line)
    if open_until:
        raise LabError(f"{where}: {open_until} is missing.")
    return shown, hidden


def first_line(error: Exception) -> str:
    """What an exception says, in one line without a full stop, and of one of the system neither number nor path."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (said.strip().splitlines() or [type(error).__name__])[0].rstrip(".")[:200]
