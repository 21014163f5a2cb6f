"""Every lab: its notebook is fresh, its reference earns all, other right answers pass, wrong ones fail."""

import ast
import builtins
import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from grading.demo_lab import with_answers
from labs.sources import SOURCES, judge, lab, public_judge, verifier

from rooflab.grading.judge.verify import Case
from rooflab.grading.lab import release
from rooflab.grading.lab.names import loaded_names, local_names


@cache
def answers_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.name, Path(__file__).with_name(f"{path.name}_answers.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers(kind: str, labels: bool = False):
    """(source, grade_id, code) of all RIGHT or WRONG answers, as test parameters; perhaps with their labels.

    They run with --all-tests. The first wrong one of every eighth question always runs.
    """
    for path in SOURCES:
        for place, (grade_id, entries) in enumerate(getattr(answers_of(path), kind).items()):
            for number, (label, code) in enumerate(entries):
                more = (label,) if labels else ()
                marks = slow_if(place % 8 or number or kind == "RIGHT" or takes_long(path, grade_id))
                yield pytest.param(path, grade_id, code, *more, id=f"{path.name}-{grade_id}-{label}", marks=marks)


def takes_long(path: Path, question: str) -> bool:
    return question in getattr(answers_of(path), "LONG", ())


def slow_if(long: bool | int) -> list:
    return [pytest.mark.slow] if long else []


def grade(path: Path, grade_id: str, code: str, by=judge):
    question = next(cell.question for cell in lab(path).cells if cell.key == grade_id)
    return by(path).grade_question(question, with_answers(lab(path), {grade_id: code}))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_committed_notebook_is_fresh(path):
    built = release.dumps(release.build(lab(path)))
    committed = path.parents[1] / f"{lab(path).stem}.ipynb"
    assert committed.read_text(encoding="utf-8") == built, "stale: run rooflab lab build"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_code_cell_is_python(path):
    for cell in lab(path).cells:
        if cell.kind == "code":
            ast.parse(cell.source)
            ast.parse(cell.public)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_value_stands_below_the_functions_of_its_cell(path):
    """Students compute it with them. Names in capitals are what the functions read."""
    for cell in lab(path).cells:
        body = ast.parse(cell.public).body if cell.role == "solution" else []
        functions = [n.lineno for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        values = [(n.lineno, n.targets[0].id) for n in body if isinstance(n, ast.Assign)]
        early = [name for line, name in values if line < max(functions, default=0) and not name.isupper()]
        assert not early, f"{cell.key}: {early}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_every_name_is_bound_in_some_part(path):
    """A linter sees only one part."""
    code = [cell for cell in lab(path).cells if cell.kind == "code"]
    bound = {"display", *dir(builtins)}.union(*(local_names(cell.source) for cell in code))
    for cell in code:
        assert loaded_names(cell.source) <= bound, cell.key


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_a_test_that_passes_shows_nothing(path):
    """The notebook would show the value of a last line such as `check(...)`, where `check` returns one."""
    code = [cell for cell in lab(path).cells if cell.kind == "code"]
    functions = [n for cell in code for n in ast.parse(cell.source).body if isinstance(n, ast.FunctionDef)]
    return_values = {function.name for function in functions if returns_a_value(function)}
    for cell in code:
        for source in (cell.source, cell.public) if cell.role == "test" else ():
            last = ast.parse(source).body[-1]
            shown = getattr(getattr(getattr(last, "value", None), "func", None), "id", "")
            assert not (isinstance(last, ast.Expr) and shown in return_values), f"{cell.key} shows what {shown} returns"


def returns_a_value(function: ast.FunctionDef) -> bool:
    """Whether the function itself returns a value; functions inside it do not count."""
    nodes = list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            nodes.extend(ast.iter_child_nodes(node))
    return False


OPTIONS = re.compile(r"(?:^ *- `\"[a-d]\"`: .*\n?)+", re.MULTILINE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_the_right_choice_is_not_the_longest_and_each_wrong_one_has_its_reason(path):
    text = "\n\n".join(cell.source for cell in lab(path).cells if cell.role == "text")
    pairs = [re.findall(r'- `"([a-d])"`: (.*)', group) for group in OPTIONS.findall(text)]
    groups = [dict(group) for group in pairs]
    assert list(map(len, groups)) == list(map(len, pairs)), "no letter stands for two options"
    code = "\n".join(cell.source for cell in lab(path).cells if cell.role == "test")
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if getattr(call.func, "id", "") == "assert_choice"]
    assert len(calls) == len(groups) > 0
    for call, options in zip(sorted(calls, key=lambda call: call.lineno), groups, strict=True):
        right = call.args[1].value
        assert len(options[right]) < max(map(len, options.values())), options[right]
        reasons = {keyword.arg: keyword.value.value for keyword in call.keywords}
        assert reasons.keys() | {right} == options.keys() and right not in reasons
        assert not any(re.search(r'"[a-d]"', reason) for reason in reasons.values()), "no reason names another letter"


def questions():
    """(source, question, kind) as test parameters: every third solution, which a change of counts may break anywhere,
    and every sixth unsolved answer. The others, and those that take long, run with --all-tests. The solution of
    Lab 1's 4.4.1 always runs: it compiles a function, which has to be fused where the judge watches its calls too.
    """
    for path in SOURCES:
        for place, question in enumerate(lab(path).questions):
            for kind in ("solution", "unsolved"):
                is_left_out = takes_long(path, question) or place % (3 if kind == "solution" else 6)
                marks = slow_if(is_left_out and (path.name, question, kind) != ("lab1", "q4_4_1", "solution"))
                yield pytest.param(path, question, kind, id=f"{kind}-{path.name}-{question}", marks=marks)


@pytest.mark.parametrize("path, question, kind", list(questions()))
def test_verify_finds_all_points_and_none(path, question, kind):
    """What `rooflab lab verify --quick` looks at, each in a test of its own."""
    outcome = verifier(path).outcome(Case(question, kind))
    assert outcome.as_expected and bool(outcome.said) == (kind == "unsolved"), str(outcome)


@pytest.mark.parametrize("path, grade_id, code", list(answers("RIGHT")))
def test_other_right_answers_pass(path, grade_id, code):
    result = grade(path, grade_id, code)
    assert result.earned == result.points, [test.message for test in result.tests]


@pytest.mark.parametrize("path, grade_id, code, label", list(answers("WRONG", labels=True)))
def test_wrong_answers_fail(path, grade_id, code, label):
    """They fail public tests already, so that a student who passes those need not fear the hidden ones."""
    only_hidden = label in answers_of(path).ONLY_HIDDEN.get(grade_id, "").split("|")
    result = grade(path, grade_id, code, judge if only_hidden else public_judge)
    assert result.earned < result.points
