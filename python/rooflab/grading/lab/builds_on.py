"""Which of the student's cells a question is graded with.

A question's tests name the questions that they need. An answer may also use a name from another answer before it, or
from a cell of the student's own, because that works in the notebook. Those cells are run as well.
"""

from __future__ import annotations

import builtins
import functools
import re
from collections.abc import Iterable, Sequence

from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.flow import changed, flow
from rooflab.grading.lab.model import Cell, Lab
from rooflab.grading.lab.names import bound_names, may_bind_any, read_names

GIVEN = {*dir(builtins), "display", "get_ipython"}
MISSING = re.compile(r"\b(\w+)'? is not defined")  # in what Python says, and in what the judge says


def cells_for(lab: Lab, question: str, cells: Sequence[Cell], changers: bool = True) -> list[Cell]:
    """The answers, and the student's own cells, that are run for a question, in the order of the notebook.

    These are the cells of the question and of those that its tests need. For each name that one of them needs and that
    none of them binds before, they are also the cells of each earlier question that binds it. The cells of an earlier
    question that changes an object under such a name, as ``rows.append(1)`` does, are run as well, unless `changers` is
    False. A name that no cell seems to bind may come from one that imports `*` or runs text.
    """
    theirs = [cell for cell in cells if cell.role in ("solution", "extra")]
    sources = [as_python(cell.source) for cell in theirs]
    flows = [flow(source) for source in sources]
    handed_out = [flow(cell.public) for cell in lab.cells if cell.role == "setup"]
    given = frozenset().union(*(one.made for one in handed_out))
    makers = _places(one.made for one in flows)
    modules = frozenset(GIVEN).union(*(one.imported for one in handed_out))
    changing = _places(changed(flows, modules)) if changers else {}
    any_name = [at for at, source in enumerate(sources) if may_bind_any(source)]
    end = max((at for at, cell in enumerate(theirs) if cell.question == question), default=0)
    wanted = lab.needs(question) | {""}
    while True:
        chosen = [at for at, cell in enumerate(theirs) if cell.question in wanted]
        needed: dict[str, set[int]] = {}  # by name, the cells before which it has to be bound
        for at in chosen:
            for name in flows[at].at_once:
                needed.setdefault(name, set()).add(at)
            for name in flows[at].later | flows[at].imported:
                needed.setdefault(name, set()).add(max(at, end) + 1)
        found: set[int] = set()
        for name, places in needed.items():
            found |= {at for at in changing.get(name, ()) if at < max(places)}
            # A cell whose functions read and bind a name, as `global n; n += 1` does, needs it from another one.
            binds = [at for at in makers.get(name, ()) if name not in flows[at].later]
            first = next((at for at in binds if theirs[at].question in wanted), len(theirs))
            unbound = max((at for at in places if at <= first), default=0)
            if name not in given:
                found |= {at for at in makers.get(name, ()) if at < unbound}
                nowhere = max((at for at in places if at <= min(binds, default=len(theirs))), default=0)
                found |= {at for at in any_name if at < nowhere and name not in GIVEN}
        more = {theirs[at].question for at in found} - wanted
        if not more:
            return [theirs[at] for at in chosen]
        wanted |= more


def _places(names: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """The cells that have each name, by their numbers."""
    found: dict[str, list[int]] = {}
    for at, some in enumerate(names):
        for name in some:
            found.setdefault(name, []).append(at)
    return found


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
