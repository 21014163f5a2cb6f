"""Inputs of hidden tests are drawn from one seed per grading, which the grade records, and no message shows them."""

import dataclasses
import json

import pytest
from grading.demo_lab import GRADE, SOURCE, TRUSTED, demo_lab, with_answers

from rooflab.cli import main
from rooflab.grading.classroom.batch import Batch
from rooflab.grading.classroom.submissions import Handed
from rooflab.grading.jail import jail
from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab import release

DRAWN = """
import rooflab as rl
from rooflab.grading import measure
drawn = measure.draw(1, 10**12), measure.rng().standard_normal(), rl.randn(1).item()
assert False, repr(drawn)
"""
RAISED = """
gemm(np.eye(2), np.eye(2))
### BEGIN HIDDEN TESTS
gemm(np.eye(3), np.full((3, 1), 50.39))
### END HIDDEN TESTS
"""


def lab_with(test: str):
    """The demo lab with this test cell in questions 1 and 2.2."""
    lab = demo_lab()
    ours = ("q1_test", "q2_2_test")
    cells = [dataclasses.replace(cell, source=test) if cell.key in ours else cell for cell in lab.cells]
    return dataclasses.replace(lab, cells=tuple(cells))


def message(judge: Judge, question: str, answers: dict[str, str] | None = None) -> str:
    return judge.grade_question(question, with_answers(judge.lab, answers or {})).tests[0].message


def test_a_seed_gives_each_test_cell_inputs_of_its_own():
    lab = lab_with(DRAWN)
    judges = [Judge(lab, TRUSTED, seed) for seed in (5, 5, 6)]
    first, again, other = [eval(message(judge, "q1")) for judge in judges]
    assert first == again, "the same seed draws the same"
    in_question_2 = eval(message(judges[0], "q2_2"))
    for mine, others, theirs in zip(first, other, in_question_2, strict=True):
        assert mine != others, "another seed draws something else"
        assert mine != theirs, "so does another test cell"


TIMED = """
from rooflab.grading import measure
assert False, repr([measure.timed(gemm, np.eye(2), np.eye(2)).value for _ in range(2)])
"""


def test_the_virtual_clock_draws_from_the_seed():
    code = "import rooflab as rl\ndef gemm(a, b):\n    return rl.latency(rl.neg, rl.ones(3), repeat=3).median_ms"
    judges = [Judge(lab_with(TIMED), TRUSTED, seed) for seed in (5, 5, 6)]
    first, again, other = (eval(message(judge, "q1", {"q1": code})) for judge in judges)
    assert first == again and first[0] != first[1] and first[0] != other[0]


def test_each_judge_has_a_seed_of_its_own():
    lab = demo_lab()
    seeds = {Judge(lab, TRUSTED).seed for _ in range(4)}
    assert len(seeds) == 4 and all(0 <= seed < 2**48 for seed in seeds)


def said_of(code: str, test: str = RAISED) -> str:
    return message(Judge(lab_with(test), TRUSTED), "q1", {"q1": code})


def test_an_error_on_hidden_inputs_is_its_type_alone():
    told = "def gemm(a, b):\n    if len(a) == {}:\n        raise ValueError(str(b))\n    return a @ b"
    hidden = (
        "ValueError on inputs that are not shown: try other sizes, types and values than those of the public tests."
    )
    assert said_of(told.format(3)) == hidden
    assert "1." in said_of(told.format(2)), "a public test may show what the student's code says"
    own = "class Told(LookupError):\n    pass\n\n\ndef gemm(a, b):\n    raise Told(b[0]) if len(b) == 3 else KeyError"
    assert said_of(own, "### BEGIN HIDDEN TESTS\n" + RAISED).split()[0] in ("LookupError", "KeyError", "RuntimeError")


QUOTES = """
from rooflab.grading import measure
def check(n):
    got = gemm(np.eye(n), np.eye(n))
    assert isinstance(got, np.ndarray), f"{n} rows: expected an array, got {got!r}, not one of " + repr(["public"])
check(2)
### BEGIN HIDDEN TESTS
check(3)
### END HIDDEN TESTS
"""


@pytest.mark.parametrize("wraps", ["{}", "({}, 1)", "[{}, 'public']", "dict([({}, 2)])"])
def test_a_text_of_the_students_is_not_quoted_where_inputs_are_hidden(wraps):
    told = "def gemm(a, b):\n    return a @ b if len(a) < {} else " + wraps.format("f'seen\\n{{len(a)}}'")
    assert "seen" in said_of(told.format(2), QUOTES), "a public test may show what the student's code says"
    said = said_of(told.format(3), QUOTES)
    assert "seen" not in said and "..." in said and "3 rows: expected an array" in said and "public" in said


OPENED = """
from rooflab.grading import measure
def check(steps):
    log = measure.faked(gemm, "<run>", steps, device={}).log
    assert not log, f"{steps} steps: work was launched in the range {log[0].label}, not in a range 'step'"
check(2)
### BEGIN HIDDEN TESTS
check(3)
### END HIDDEN TESTS
"""


def test_a_range_of_the_students_is_not_named_where_inputs_are_hidden():
    told = "import rooflab as rl\ndef gemm(run, steps):\n    if steps > {}:\n        "
    told += "with rl.range(f'seen-{{steps}}'):\n            run()"
    assert "seen-2" in said_of(told.format(1), OPENED)
    assert said_of(told.format(2), OPENED) == "3 steps: work was launched in the range ..., not in a range 'step'"


COUNTED = """
from rooflab.grading import measure
gemm(np.eye(2), np.eye(2))
### BEGIN HIDDEN TESTS
assert measure.count(gemm, np.eye(3), np.eye(3)).macs == 1, " ".join(["a val" + "ue of m" + "acs", "by m" + "atmul"])
### END HIDDEN TESTS
"""


def test_words_of_the_tests_stay_where_inputs_are_hidden():
    code = "import rooflab as rl\ndef gemm(a, b):\n    {}return (rl.tensor(a) @ rl.tensor(b)).numpy()"
    assert said_of(code.format(""), COUNTED).startswith("a value of macs by matmul")
    raised = said_of(code.format("if len(a) == 3: raise ValueError\n    "), COUNTED)
    assert raised.endswith("try other sizes, types and values than those of the public tests.")
    named = said_of("def gemm(a, b):\n    return {'types': 1} if len(a) == 2 else 1 / 0", COUNTED)
    assert named.startswith("ZeroDivisionError on inputs that are not shown: try other sizes, types and values")


LOOKED_UP = """
seen = gemm(np.eye(2), np.eye(2))[{}]
### BEGIN HIDDEN TESTS
assert gemm(np.eye(3), np.eye(3))[1000], "the entry"
### END HIDDEN TESTS
"""


def test_a_tests_own_error_on_hidden_inputs_is_its_type_alone():
    """Its text would have the hidden number, as that of a number that does not fit a type of NumPy's has."""
    code = "def gemm(a, b):\n    return {1: 1}"
    said = said_of(code, LOOKED_UP.format(1))
    assert said.startswith("KeyError where a hidden test used what the answer gave") and "1000" not in said
    assert said_of(code, LOOKED_UP.format(2000)) == "KeyError: 2000"


def test_a_type_of_the_students_is_not_named_where_inputs_are_hidden():
    told = "def gemm(a, b):\n    return a @ b if len(a) < {} else type(f'Seen{{len(a)}}', (), {{}})()"
    assert "Seen2" in said_of(told.format(2), QUOTES)
    assert "on inputs that are not shown: try other" in (said := said_of(told.format(3), QUOTES)) and "Seen" not in said


def said_after_hidden_tests(code: str, later: str, last: str) -> list[str]:
    """What three test cells say of question 1; the first has a hidden test."""
    lab, first = demo_lab(), 'gemm("first")\n'
    hidden = first + '### BEGIN HIDDEN TESTS\ngemm("secret")\n### END HIDDEN TESTS\n'
    cells = {
        "q1_test": (hidden, first),
        "q1_more_test": (later, "" if later.startswith("###") else later),
        "q1_last_test": (last, last),
    }
    at = next(i for i, cell in enumerate(lab.cells) if cell.key == "q1_test")
    ours = [
        dataclasses.replace(lab.cells[at], key=key, source=text, public=public) for key, (text, public) in cells.items()
    ]
    lab = dataclasses.replace(lab, cells=(*lab.cells[:at], *ours, *lab.cells[at + 1 :]))
    result = Judge(lab, TRUSTED).grade_question("q1", with_answers(lab, {"q1": code}))
    assert not result.tests[0].message and not result.lost
    return [test.message for test in result.tests[1:]]


@pytest.mark.parametrize(
    "later, says",
    [
        ('got = gemm("later")', "raise ValueError(str(seen))"),
        ('got = gemm("later")', "return type(' '.join(seen), (), {})()"),
        ('got = gemm("later")\nassert got == "later", f"expected later, got {got}"', "return str(seen)"),
    ],
)
def test_what_student_code_says_in_a_public_test_it_says_before_any_hidden_test(later, says):
    keeps = "seen = []\ndef gemm(text):\n    seen.append(text)\n    if text == 'later':\n        " + says
    said, last = said_after_hidden_tests(keeps, later, "assert got")
    assert "first" in said and "later" in said and "secret" not in said and "secret" not in last, (said, last)


def test_a_name_that_a_hidden_test_did_not_come_to_define_has_the_reason_of_that_test():
    fails = "def gemm(text):\n    return 1 / (text != 'later')"
    hides = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"
    said, last = said_after_hidden_tests(fails, hides.format('got = gemm("later")'), hides.format("assert got"))
    assert said == last and said.startswith("ZeroDivisionError on inputs that are not shown")


def test_a_public_test_that_fails_only_after_hidden_ones_says_so():
    keeps = (
        "seen = []\ndef gemm(text):\n    seen.append(text)\n    if len(seen) > 2:\n        raise ValueError(str(seen))"
    )
    said, _ = said_after_hidden_tests(keeps, 'gemm("later")', "")
    assert said.startswith("This test passes in a new process, and failed after the tests before it")


def test_only_tests_up_to_what_is_asked_for_are_run_again(monkeypatch):
    ran, run = [], Judge._run
    monkeypatch.setattr(Judge, "_run", lambda self, cell, *more: [ran.append(cell.key), run(self, cell, *more)][1])
    said, _ = said_after_hidden_tests("def gemm(text):\n    return 1 / (text != 'later')", 'gemm("later")', "")
    assert said.startswith("ZeroDivisionError") and ran == ["q1_test", "q1_more_test", "q1_last_test", *ran[:2]]


@pytest.mark.parametrize("body", ["{}", "{'__class__': property(lambda self: 1 / 0)}"])
def test_a_value_that_may_not_cross_has_no_words_of_the_students_in_a_hidden_test(body):
    code = f"def gemm(text):\n    if text == 'secret':\n        globals()['gemm'] = type(text, (), {body})()"
    said, last = said_after_hidden_tests(code, "### BEGIN HIDDEN TESTS\ngemm\n### END HIDDEN TESTS", "")
    assert said.startswith("A value could not be passed to the tests") and not last


def test_a_cell_that_is_hidden_as_a_whole_is_hidden_from_its_first_line():
    code = "def gemm(text):\n    if text == 'later':\n        raise ValueError(text)"
    said, last = said_after_hidden_tests(code, "### its helpers\ngemm('later')", "")
    assert said.startswith("ValueError on inputs that are not shown") and not last


def test_an_empty_answer_is_told_as_one_in_a_hidden_test_too():
    raised = "def gemm(a, b):\n    if len(b) == 3:\n        {}\n    return a @ b"
    ours = said_of(raised.format('raise NotImplementedError("Question 1: write your code here")'))
    assert ours == "NotImplementedError: Question 1: write your code here"
    forged = said_of(raised.format('raise NotImplementedError("Question 5039: write your code here")'))
    assert forged == ours, "the number in it is not the student's"


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "ada.ipynb"
    path.write_text(release.dumps(release.build(demo_lab(), solved=True)), encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_command_records_its_seed_and_takes_one(notebook, tmp_path, capsys):
    grade = [*GRADE, "lab9", str(notebook), "--labs", str(SOURCE.parent), "--output", str(tmp_path), "--json"]
    seeds = []
    for more in ([], [], ["--seed", "50"]):
        assert main([*grade, str(tmp_path / "grade.json"), *more]) == 0
        seeds.append(json.loads((tmp_path / "grade.json").read_text(encoding="utf-8"))["seed"])
    assert seeds[0] != seeds[1] and seeds[2] == 50


@pytest.mark.slow
def test_the_same_notebook_of_a_class_keeps_its_seed(notebook, tmp_path):
    (tmp_path / "grades").mkdir()
    batch, later = (Batch(demo_lab(), tmp_path / "grades", TRUSTED) for _ in range(2))
    ada = Handed("ada", notebook)
    assert batch.with_seed(ada).seed is None
    (first,) = batch.grade([ada], 1)
    assert batch.with_seed(ada).seed == first["seed"]
    (again,) = later.grade([later.with_seed(ada)], 1)
    assert again["seed"] == first["seed"], "the command that grades is told"
    notebook.write_text(notebook.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert batch.with_seed(ada).seed is None, "another notebook, another seed"


@pytest.mark.parametrize("text", ["", "[]", '{"seed": true}', '{"seed": -1}', '{"seed": "5"}'])
def test_a_file_that_holds_no_seed(notebook, tmp_path, text):
    batch = Batch(demo_lab(), tmp_path, TRUSTED)
    ada = Handed("ada", notebook)
    sha256 = batch._origin(ada)["sha256"]
    (tmp_path / "ada.json").write_text(text.replace("{", f'{{"sha256": "{sha256}", '), encoding="utf-8")
    assert batch.with_seed(ada).seed is None


@pytest.mark.slow
def test_gpus_are_shown_only_where_they_were_asked_for(notebook, tmp_path, monkeypatch, capsys):
    hidden = []
    monkeypatch.setattr(jail, "hide_gpus", lambda: hidden.append(True))
    grade = [*GRADE, "lab9", str(notebook), "--labs", str(SOURCE.parent), "--output", str(tmp_path)]
    assert main([*grade, "--gpu"]) == 0 and not hidden
    assert main(grade) == 0 and hidden
    monkeypatch.setattr(jail.Path, "glob", lambda *_: [jail.Path("/dev/nvidia0")])
    for value, shown in (("0", True), ("", False), ("-1", False)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert ("/dev/nvidia0" in jail.command(["true"], str(tmp_path))) == shown, repr(value)
