"""The student notebook of a lab, made from its source, with a proof that nothing leaks.

A source is a folder, `notebooks/source/labN`, of parts in jupytext's percent format: `00_introduction.py`,
`10_gemm.py` ... They are joined in the order of their names. The header of the first names the notebook, `labN_` and a
word, as `rooflab: {notebook: labN_kernels}` under `jupyter:`, and its first cell opens with the title. A question, its
answer and its tests stand side by side. Cells, by their metadata:

    # %% [markdown]                                                         text; `{points q1_3}` is filled in
    # %% tags=["setup"]                                                     runs in the judge and in the worker
    # %%                                                                    demonstration: in Jupyter only
    # %% nbgrader={"grade_id": "q1_3", "solution": true}                    the student's answer (code)
    # %% nbgrader={"grade_id": "q1_3", "solution": true} rooflab={"counters": false}    one that must not count
    # %% [markdown] nbgrader={"grade_id": "q1_3_why", "solution": true}     the student's prose, never graded
    # %% nbgrader={"grade_id": "q1_3_test", "grade": true, "points": 5} rooflab={"needs": ["q1_1"], "seconds": 60}

The points of a test cell stand there and nowhere else. Prose has none, because its points are entered by hand. A
grade_id is a question (`q1_3`, bonus `b3_1`) and perhaps a part (`_test`); cells with the same question belong
together. The lines between `### BEGIN SOLUTION` and `### END SOLUTION` are what the student has to write. Those between
`### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` are what the student never sees. A set-up cell of hidden lines alone
runs in the judge and nowhere else: there, hidden tests find what they compare with. An indented solution becomes `raise
NotImplementedError`, one at the margin becomes `# your code here`. Names that tests use have to be bound outside of the
solution. Every assert says in a sentence what to look at: the report shows that sentence, never the code. A test cell
gets a first line that says what it checks, and its code is folded.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from typing import Any

import rooflab
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.model import HIDDEN, SOLUTION, Cell, Lab, LabError
from rooflab.grading.lab.names import bound_names, loaded_names, local_names

MOST = 1e6  # points, seconds or GB
TRIVIAL = frozenset(["(", ")", "[", "]", "{", "}", ",", ":", "else:", "try:", "pass", "return"])


def build(lab: Lab, solved: bool = False) -> Any:
    """The student notebook, or with `solved` the teacher's. The same source gives the same bytes.

    Raises
    ------
    LabError
        A test has no points or no answer, it uses a name that nothing binds, or something secret is left.
    """
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells = []
    for cell in lab.cells:
        if cell.hidden and not solved:
            continue
        make = new_markdown_cell if cell.kind == "markdown" else new_code_cell
        cells.append(make(cell.source if solved else cell.public, id=cell.key[:64], metadata=metadata(cell)))
    notebook = new_notebook(cells=cells, metadata=_notebook_metadata(lab))
    if not solved:
        check_leaks(lab, notebook)
    _check_syntax(lab)
    _check_tests(lab)
    _check_names(lab)
    return notebook


def dumps(notebook: Any) -> str:
    """The notebook as the text of a file."""
    import nbformat

    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=4) + "\n"


def metadata(cell: Cell) -> dict:
    """nbgrader's fields, spelled out. nbgrader sees prose as graded by hand, here out of 0 points."""
    marks = {
        "grade": cell.role in ("test", "prose") or cell.hidden,  # nbgrader hides lines of graded cells only
        "grade_id": cell.key,
        "locked": cell.locked,
        "schema_version": 3,
        "solution": not cell.locked,
        "task": False,
    }
    if marks["grade"]:
        marks["points"] = cell.points
    more: dict[str, Any] = {"tags": list(cell.tags)} if cell.tags else {}
    if cell.role == "test":  # folded, in JupyterLab and in Colab
        more |= {"jupyter": {"source_hidden": True}, "cellView": "form"}
    if cell.options:
        more["rooflab"] = cell.options
    return {
        "nbgrader": marks,
        **({"deletable": False, "editable": not cell.locked} if cell.question else {}),
        **more,
    }


def check_leaks(lab: Lab, notebook: Any) -> None:
    """Prove that the notebook holds no line and no literal that only a solution or a hidden test has, and no output.

    Lines are compared by their tokens, comments by their content, so spacing and commenting out hide nothing. A number
    or text that only secret parts contain must not occur anywhere in the notebook.
    """
    public, secret = _split(lab)
    sources = "\n".join(cell["source"] for cell in notebook["cells"])
    if left := _lines(sources.split("\n")) & (_lines(secret.split("\n")) - _lines(public.split("\n"))):
        raise LabError(f"{lab.stem}: a secret line is left in the notebook: {' '.join(min(left))}")
    around = " ".join(str(part["metadata"]) for part in (notebook, *notebook["cells"]))
    for literal, pattern in _literals(secret.split("\n")).items():
        places = sources if literal[0] in "'\"" else f"{sources} {around}"
        if re.search(pattern, places) and not re.search(pattern, public):
            raise LabError(f"{lab.stem}: a secret value is left in the notebook: {literal}")
    if any(mark in sources for mark in (*SOLUTION, *HIDDEN)):
        raise LabError(f"{lab.stem}: a marker of a secret part is left in the notebook.")
    if any(cell.get("outputs") or cell.get("execution_count") or cell.get("attachments") for cell in notebook["cells"]):
        raise LabError(f"{lab.stem}: outputs are left in the notebook.")


def _split(lab: Lab) -> tuple[str, str]:
    """Public and secret text of the sources, found in another way than by `lab.public_part`.

    So a fault there is noticed here.
    """
    region = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
    public = "\n".join(region.sub("", cell.source) for cell in lab.cells)
    return public, "\n".join(found[2] for cell in lab.cells for found in region.finditer(cell.source))


def _lines(lines: list[str]) -> set[tuple[str, ...]]:
    """Token tuples of all lines, and of the content of their comments."""
    found: set[tuple[str, ...]] = set()
    for line in lines:
        tokens = _tokens(line)
        found.add(tuple(token for token in tokens if token[0] != "#"))
        found.update(tuple(_tokens(token.lstrip("# "))) for token in tokens if token[0] == "#")
    return {tokens for tokens in found if not TRIVIAL.issuperset(tokens)}


def _tokens(line: str) -> list[str]:
    """Tokens of one line of code; words of a line that is not code on its own."""
    try:
        found = tokenize.generate_tokens(io.StringIO(line.strip() + "\n").readline)
        return [token.string for token in found if token.string.strip()]
    except (tokenize.TokenError, SyntaxError):
        return line.split()


def _literals(lines: list[str]) -> dict[str, str]:
    """Numbers of three digits or more and texts of four letters or more, each with a pattern that finds it."""
    patterns = {}
    for word in {token for line in lines for token in _tokens(line)}:
        if word[0].isdigit() and len(word) > 2:
            patterns[word] = rf"(?<![\w.]){re.escape(word)}(?!\w)"
        elif word[0] in "'\"" and len(word) > 5:
            patterns[word] = re.escape(word.strip("'\""))
    return patterns


def _check_syntax(lab: Lab) -> None:
    for cell in lab.cells:
        if cell.kind == "code":
            for source in (cell.source, cell.public):
                try:
                    ast.parse(as_python(source))
                except SyntaxError as error:
                    line = (error.text or "").strip()
                    raise LabError(f"{lab.stem}: {cell.key} is not Python: {error.msg}: {line}") from None


def is_in_range(cell: Cell) -> bool:
    """Whether a lab may give the points and the limits of a cell."""
    limits = [float(cell.options.get(name, 1)) for name in ("seconds", "memory_gb")]
    return 0 <= cell.points < MOST and all(0 < one < MOST for one in limits)


def _check_tests(lab: Lab) -> None:
    tests = [cell for cell in lab.cells if cell.role == "test"]
    answered = {cell.question for cell in lab.cells if cell.role == "solution"}
    for cell in tests:
        if missing := ({cell.question} | set(cell.options.get("needs", ()))) - answered:
            raise LabError(f"{lab.stem}: {cell.key} needs {min(missing)}, which has no solution cell.")
        if cell.points <= 0:
            raise LabError(f"{lab.stem}: {cell.key} has no points.")
        if not is_in_range(cell):
            raise LabError(f"{lab.stem}: {cell.key} has points, seconds or memory_gb that are not below {MOST:,.0f}.")
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Assert) and node.msg is None:
                raise LabError(f"{lab.stem}: {cell.key}: `{ast.unparse(node)}` does not say what to look at.")


def _check_names(lab: Lab) -> None:
    """A test may use names that setup cells bind, its own names, those that the public parts of its question's solution
    cells bind, and those of the question's earlier tests.
    """
    setup = [cell for cell in lab.cells if cell.role == "setup"]
    whole = set(dir(builtins)).union(*(bound_names(cell.source) for cell in setup))
    given = set(dir(builtins)).union(*(bound_names(cell.public) for cell in setup))
    for cell in lab.cells:
        if cell.role != "test":
            continue
        before = lab.tests(cell.question)[: lab.tests(cell.question).index(cell)]
        own = lab.student_names(cell.question).union(*(bound_names(c.public) for c in before))
        for source, known in ((cell.source, whole), (cell.public, given)):
            if unknown := loaded_names(source) - known - own - local_names(source):
                name = f"{lab.stem}: {cell.key} uses {min(unknown)}"
                raise LabError(f"{name}, which no public part of a setup or solution cell binds.")


def _notebook_metadata(lab: Lab) -> dict:
    return {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "rooflab": {"lab": lab.name, "points": lab.points, "bonus": lab.bonus, "version": rooflab.__version__},
    }
