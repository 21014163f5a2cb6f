"""Which of the student's cells a question is graded with.

A question's tests name the questions that they need. An answer may also use a name from another answer before it, or
from a cell of the student's own, because that works in the notebook. Those cells are run as well.
"""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Sequence

from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import Cell, Lab
from rooflab.grading.lab.names import bound_names, made_names, may_bind_any, read_names

GIVEN = {*dir(builtins), "display", "get_ipython"}
MISSING = re.compile(r"\b(\w+)'? is not defined")  # in what Python says, and in what the judge says


def cells_for(lab: Lab, question: str, cells: Sequence[Cell]) -> list[Cell]:
    """The answers, and the student's own cells, that are run for a question, in the order of the notebook.

    These are the cells of the question, of those that its tests need, and of each earlier question that binds a name
    which one of these cells reads and none of them binds. A name that no cell seems to bind may come from one that
    imports `*` or runs text.
    """
    theirs = [cell for cell in cells if cell.role in ("solution", "extra")]
    given = _bound(tuple(cell.public for cell in lab.cells if cell.role == "setup"))
    wanted = lab.needs(question) | {""}
    while True:
        chosen = [cell for cell in theirs if cell.question in wanted]
        known = given.union(*(_bound((as_python(cell.source),)) for cell in chosen))
        more: set[str] = set()
        for index, cell in enumerate(theirs):
            if cell.question in wanted and (unknown := read_names(as_python(cell.source)) - known):
                before = [(one.question, as_python(one.source)) for one in theirs[:index]]
                nowhere = unknown.difference(GIVEN, *(made_names(source) for _, source in before))
                found = {one for one, source in before if made_names(source) & unknown}
                found |= {one for one, source in before if nowhere and may_bind_any(source)}
                more |= found - wanted
        if not more:
            return chosen
        wanted |= more


def related(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The code of the last cell, and of those before it that share a name of the student's with it or with one another
    of these. What else ran before it is nothing that it uses.
    """
    sources = [as_python(cell.source) for cell in cells]
    theirs = _bound(tuple(sources))
    names = [(read_names(source) | _bound((source,))) & theirs for source in sources]
    shared, found = names[-1], {len(cells) - 1}
    while more := {at for at, one in enumerate(names) if at not in found and one & shared}:
        found |= more
        shared = shared.union(*(names[at] for at in more))
    return tuple(sources[at] for at in sorted(found))


def where_from(lab: Lab, message: str) -> str:
    """What a student should know about a name that `message` says is not defined; empty if there is nothing to say."""
    found = MISSING.search(message)
    shown = (cell.source for cell in lab.cells if cell.role == "given")
    if not found or not any(found[1] in _bound((source,)) for source in shown):
        return ""
    return f" {found[1]} comes from a cell that only prints or plots. Such cells are not run: define it in your answer."


def why_stopped(lab: Lab, message: str, stopped: Sequence[tuple[Cell, str]]) -> str:
    """The sentence about one of the cells that stopped. If `message` says that a name is not defined, it is the cell
    that should have bound this name. Otherwise it is the first.
    """
    missing, handed_out = MISSING.search(message), {cell.key: cell.public for cell in lab.cells}
    for cell, sentence in stopped:
        # A cell that is not Python binds nothing, so the cell that was handed out is looked at as well.
        if missing and missing[1] in _bound((as_python(cell.source), handed_out.get(cell.key, ""))):
            return sentence
    return stopped[0][1]


@functools.lru_cache(maxsize=1024)
def _bound(sources: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(bound_names, sources))
