"""A grade as a table for the terminal, as JSON, and as an HTML page with the plots under the table."""

from __future__ import annotations

import functools
import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rooflab
from rooflab.files import replacing
from rooflab.grading.classroom import marking
from rooflab.grading.judge.judge import QuestionResult
from rooflab.grading.lab.model import UNWRITTEN, Lab, named
from rooflab.grading.lab.printable import printable
from rooflab.results import ResultMixin, Table, page

FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\w$])\$([^$\n]+?)\$(?![\w$])", re.DOTALL)
SAFE_OUTPUTS = ("image/png", "text/plain")
_SAFE_TAGS = """
a abbr b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i img li ol p pre span strong sub summary sup table
tbody td th thead tr ul"""
SAFE_TAGS = set(_SAFE_TAGS.split())  # none of them loads or runs anything
LOADS = re.compile(r"<script\b(?:(?!</script>).)*https://(?:(?!</script>).)*</script>", re.DOTALL)  # from elsewhere
SAFE_ATTRIBUTES = {"img": {"src", "alt"}, "a": {"href", "title"}, "abbr": {"title"}, "*": {"class"}}
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/=\s]*")
FOCUSED = re.compile(r'<div( class="[^"]*jp-(?:Cell-inputWrapper|OutputArea-output)\b)')  # by the keyboard
TOLD = "{% extends 'lab/index.html.j2' %}{% block data_png %}{{ super() | told(output) }}{% endblock %}"
UNTOLD = re.compile(r"<img (?![^>]*\balt=)")
# Around the points on a page, before anything that a student wrote.
BY_HAND = ("<!-- by hand -->", "<!-- end by hand -->")
PAGES = "rooflab.grading.classroom.pages"  # where the templates lie
MAX_OUTPUTS, MAX_SHOWN = 100, 20_000  # of a cell; characters of one of them


@dataclass
class Grade(ResultMixin):
    """What `rooflab lab check`, `run` and `grade` produce.

    `isolated` says whether student code ran in the jail; None where that does not matter, as it was the student's own
    machine. `limited` says what limits it there. `sha256` names the package and the lab's source. `seed` is what hidden
    tests drew their inputs from: grading again with it draws the same.
    """

    lab: Lab
    notebook: str
    repairs: list[str] = field(default_factory=list)
    results: list[QuestionResult] = field(default_factory=list)
    findings: dict[str, str] = field(default_factory=dict)
    done: bool = False
    isolated: bool | None = None
    limited: str = ""
    sha256: dict[str, str] = field(default_factory=dict)
    seed: int | None = None
    by_hand: Mapping[str, Any] = field(default_factory=dict)

    def total(self, first: str, earned: bool) -> int:
        """Sum over the questions whose id begins with `first` (q or b)."""
        ours = [result for result in self.results if result.question.startswith(first)]
        return sum(result.earned if earned else result.points for result in ours)

    @property
    def full(self) -> bool:
        return self.done and all(result.earned == result.points for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        return {
            "lab": self.lab.name,
            "rooflab": rooflab.__version__,
            "notebook": self.notebook,
            "status": "done" if self.done else "running",
            "points": self.total("q", True),
            "out_of": (self.lab.points if not self.done else self.total("q", False)) + sum(self._stated.values()),
            "bonus": self.total("b", True),
            "bonus_out_of": self.lab.bonus if not self.done else self.total("b", False),
            "pending": sum(result.pending for result in self.results),
            "manual_points": (by_hand := sum(mark.points or 0 for mark in self.by_hand.values())),
            "manual_out_of": sum(self._stated.values()),
            "total": self.total("q", True) + by_hand,
            "full_marks": self.full,
            "isolated": self.isolated,
            "limited": self.limited,
            "graded_with": self.sha256,
            "seed": self.seed,
            "repairs": self.repairs,
            "findings": self.findings,
            "questions": [_question(result) for result in self.results],
        }

    @property
    def _stated(self) -> dict[str, int]:
        """What headings state for the questions that have points by hand."""
        given = {question for question, mark in self.by_hand.items() if mark.points is not None}
        return {question: points for question, points in marking.stated(self.lab).items() if question in given}

    def _figures(self) -> Table:
        names = ("question", "points", "out_of", "pending", "seconds")
        rows = zip(map(_question, self.results), map(_said, self.results), strict=True)
        return Table.of({name: row[name] for name in names} | {"why": "\n".join(said)} for row, said in rows)

    def _table(self) -> Table:
        rows = [(*_cells(result), "; ".join(_said(result))) for result in self.results]
        return Table((*_HEAD, "what to look at"), rows, self.lab.title, summary(self.to_dict()), labels=1)

    def __str__(self) -> str:
        return table(self)

    def write_json(self, path: Path) -> None:
        """Write what `to_dict` holds."""
        with replacing(path) as unfinished:
            unfinished.write_text(self.to_json(indent=1) + "\n", encoding="utf-8")

    def write_gradescope(self, path: Path) -> None:
        """Write the grade as Gradescope's autograder reads it (results.json): bonus questions are out of 0 points."""
        tests: list[dict[str, Any]] = [
            {
                "name": f"Question {result.label}",
                "score": result.earned,
                "max_score": 0 if result.question.startswith("b") else result.points,
                "output": "\n".join(_said(result)),
                "status": "passed" if result.earned == result.points else "failed",
            }
            for result in self.results
        ]
        tests += [
            {"name": f"Question {question}, by hand", "score": mark.points or 0, "output": mark.comment}
            | ({"max_score": self._stated[question]} if question in self._stated else {})
            for question, mark in self.by_hand.items()
        ]
        said = "\n".join([summary(self.to_dict()), *(f"repaired: {repair}" for repair in self.repairs)])
        whole = {"score": sum(test["score"] for test in tests), "output": said, "tests": tests}
        with replacing(path) as unfinished:
            unfinished.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


def write_gradescope_failure(path: Path, why: str) -> None:
    """Write for Gradescope why there is no grade."""
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps({"score": 0, "output": why, "tests": []}, indent=1) + "\n", encoding="utf-8")


def table(grade: Grade) -> str:
    """The grade for a terminal: a line a question, and under it why points were lost."""
    head, *rows = Table(_HEAD, list(map(_cells, grade.results)), labels=1).lines()
    lines = [head]
    for row, result in zip(rows, grade.results, strict=True):
        lines += [row, *("           " + line.replace("\n", "\n           ") for line in _said(result))]
    return "\n".join([*lines, *(f"repaired: {repair}" for repair in grade.repairs), summary(grade.to_dict())])


_HEAD = ("question", "points", "time")


def _cells(result: QuestionResult) -> tuple[str, ...]:
    return result.label, f"{result.earned} of {result.points + result.pending}", f"{result.seconds:.1f} s"


def points(result: Mapping[str, Any]) -> str:
    """The points that count in the end, and what they are made of if not of tests alone; `result` is as in the JSON.
    Where no heading states what points by hand are out of, the whole is not out of anything.
    """
    by_hand, late, stated = result.get("manual_points"), result.get("late_penalty"), result.get("manual_out_of", 0)
    tests = f" of {result['out_of'] - stated}" if by_hand or stated else ""
    made_of = [f"{result['points']}{tests} in the tests"]
    made_of += [f"{by_hand} of {stated} by hand" if stated else f"{by_hand} by hand" if by_hand else ""]
    made_of += [f"{late} taken off because it was late" if late else ""]
    whole = f" of {result['out_of']}" if stated or not by_hand else ""
    text = f"{result.get('total', result['points'])}{whole} points"
    return text + f" ({', '.join(filter(None, made_of))})" * bool(by_hand or stated or late)


def summary(result: Mapping[str, Any]) -> str:
    """One line: points and bonus."""
    text = points(result)
    if result.get("bonus_out_of"):
        text += f", {result['bonus']} of {result['bonus_out_of']} bonus points"
    if result["pending"]:
        text += f"; {result['pending']} more are pending"
    return text + ("; not isolated" if result["isolated"] is False else "")


def _said(result: QuestionResult) -> list[str]:
    """Why points were lost, or cannot be given here."""
    waiting: dict[str, int] = {}
    for test in result.tests:
        if test.pending:
            waiting[test.pending] = waiting.get(test.pending, 0) + test.points
    pending = [f"Pending, 0 of {points}: {why}" for why, points in waiting.items()]
    stubs = [found[1] and named(found[1]) for test in result.tests if (found := UNWRITTEN.fullmatch(test.message))]
    empty = "Not answered yet" + f": {'; '.join(dict.fromkeys(filter(None, stubs)))}" * any(stubs)
    said = [test.message for test in result.tests if test.message]
    lost = dict.fromkeys(message for message in said if not UNWRITTEN.fullmatch(message))
    return [*[empty] * bool(stubs), *lost, *pending]


def write_html(grade: Grade, notebook: Any, path: Path, trusted: bool) -> None:
    """The page. What a student wrote is sanitised, and of its outputs only images and plain text are kept."""
    for cell in notebook.cells if not trusted else ():
        if cell.cell_type == "code":
            cell.outputs = _safe(cell.outputs)
    text = _typeset(_exported(notebook, grade.lab.title, trusted), grade.lab)
    start = text.index(">", text.index("<body")) + 1
    with replacing(path) as unfinished:
        whole = text[:start] + _html_table(grade) + text[start:]
        whole = _with_by_hand(whole, grade.to_dict(), grade.by_hand)
        unfinished.write_text(whole, encoding="utf-8", errors="replace")


def _exported(notebook: Any, title: str, trusted: bool) -> str:
    """nbconvert's page. It would read the whole page again to mark two kinds of elements and pictures without a text,
    which takes longer than all else: that is done here.
    """
    from nbconvert import HTMLExporter, TemplateExporter

    class Kept(TemplateExporter):
        def from_notebook_node(self, *args: Any, **kwargs: Any) -> Any:
            self.kept, resources = super().from_notebook_node(*args, **kwargs)
            return "", resources

    class Exporter(HTMLExporter, Kept):
        pass

    exporter = Exporter(
        raw_template=TOLD,
        sanitize_html=not trusted,
        exclude_input_prompt=True,
        exclude_anchor_links=not trusted,  # they would lead to an id, which is left out
        extra_template_basedirs=[],  # templates are code, and none comes from the working directory
    )
    exporter.register_filter("clean_html", _clean)
    exporter.register_filter("told", _told)
    exporter.from_notebook_node(notebook, {"metadata": {"name": title}})
    text = FOCUSED.sub(r'<div tabindex="0"\1', exporter.kept)
    return UNTOLD.sub('<img alt="No description has been provided for this image" ', text)


def add_by_hand(path: Path, result: Mapping[str, Any], marks: Mapping[str, Any]) -> None:
    """Lead a student's page with the points of `result`, and show what an instructor gave, in place of what stood there
    before.
    """
    if not path.exists() or "points" not in result:
        return
    text = path.read_text(encoding="utf-8")
    if (whole := _with_by_hand(text, result, marks)) != text:
        with replacing(path) as unfinished:
            unfinished.write_text(whole, encoding="utf-8")


def _with_by_hand(text: str, result: Mapping[str, Any], marks: Mapping[str, Any]) -> str:
    before, mark, rest = text.partition(BY_HAND[0])
    shown = page(PAGES, "by_hand.html", notebook=result["notebook"], summary=summary(result), marks=marks)
    return before + mark + shown + rest[rest.index(BY_HAND[1]) :] if mark else text


def _clean(text: Any) -> str:
    """HTML with safe tags alone; nbconvert's own filter would leave paragraphs and headings as text, and is slower."""
    import nh3

    whole = text.decode() if isinstance(text, bytes) else str(text)
    whole = whole.encode("utf-8", "replace").decode()  # a lone surrogate is not text
    return nh3.clean(
        whole,
        tags=SAFE_TAGS,
        attributes=SAFE_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes={*nh3.ALLOWED_URL_SCHEMES, "data"},
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    """Of data, only a picture may be shown, and of pictures only one that is in the page. Of classes, those of coloured
    code alone: JupyterLab's style on the page has some that lay an element over all others. Links within the page lead
    nowhere, because nothing that a student wrote keeps its id.
    """
    if name == "class":
        return " ".join(one for one in value.split() if one in _colours()) or None
    is_data = value.strip().casefold().startswith("data:")
    if tag == "img" and name == "src":
        return value if PICTURE.fullmatch(value) else None
    return None if is_data or (name == "href" and value.strip().startswith("#")) else value


@functools.cache
def _colours() -> frozenset[str]:
    """The classes of coloured code."""
    from pygments.token import STANDARD_TYPES

    return frozenset(["highlight", *STANDARD_TYPES.values()])


def _typeset(text: str, lab: Lab) -> str:
    """The page with the lab's own formulas as MathML, which a browser shows offline. It loads nothing."""
    from latex2mathml.converter import convert

    for cell in lab.cells:
        for block, inline in FORMULA.findall(cell.source) if cell.role == "text" else ():
            written = f"$${block}$$" if block else f"${inline}$"
            shown = convert(block or inline, display="block" if block else "inline")
            text = text.replace(html.escape(written, quote=False), shown)
    return LOADS.sub("", text)


def _html_table(grade: Grade) -> str:
    rows = [
        ("lost" if result.earned < result.points else "" if result.pending else "full", result, _said(result))
        for result in grade.results
    ]
    return page(PAGES, "grade.html", grade=grade, rows=rows)


def _safe(outputs: Sequence[Any]) -> list[Any]:
    from nbformat.v4 import new_output

    kept = []
    for output in outputs[:MAX_OUTPUTS]:
        kind = output.get("output_type")
        if kind in ("display_data", "execute_result"):
            data = {name: output.get("data", {}).get(name) for name in SAFE_OUTPUTS}
            data = {name: value for name, value in data.items() if isinstance(value, str)}
            data |= {"text/plain": data["text/plain"][:MAX_SHOWN]} if "text/plain" in data else {}
            kept += [new_output("display_data", data=data, metadata=_described(output))] * bool(data)
        elif kind == "stream" and isinstance(output.get("text"), str):
            kept.append(new_output("stream", name="stdout", text=output["text"][:MAX_SHOWN]))
    return kept


def _described(output: Any) -> dict[str, Any]:
    """Of what a notebook says about a picture, its alternative text."""
    about = output.get("metadata")
    about = about.get("image/png") if isinstance(about, dict) else None
    text = about.get("alt") if isinstance(about, dict) else None
    return {"image/png": {"alt": printable(text)}} if isinstance(text, str) else {}


def _told(picture: Any, output: Any) -> str:
    """The HTML of a picture with its alternative text, which nbconvert's template leaves out."""
    text = _described(output).get("image/png", {}).get("alt", "")
    return str(picture).replace("<img ", f'<img alt="{html.escape(text)}" ', 1) if text else str(picture)


def _question(result: QuestionResult) -> dict[str, Any]:
    return {
        "question": result.label,
        "points": result.earned,
        "out_of": result.points,
        "pending": result.pending,
        "seconds": round(result.seconds, 2),
        "tests": [
            {
                "grade_id": one.grade_id,
                "points": one.earned,
                "out_of": one.points,
                "message": one.message,
                "pending": one.pending,
            }
            for one in result.tests
        ],
    }
