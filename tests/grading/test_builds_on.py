"""An answer may use what answers before it define, as in the notebook, and what the student's own cells define."""

import time
from dataclasses import replace

import pytest
from grading.demo_lab import TRUSTED, demo_lab, with_answers

from rooflab.grading.judge.judge import Judge
from rooflab.grading.lab.builds_on import cells_for, related
from rooflab.grading.lab.cells import as_python
from rooflab.grading.lab.flow import Effects, flow
from rooflab.grading.lab.model import UNWRITTEN, Cell

LAB = demo_lab()
SHOWS = Cell("cell-shows", "given", "shown = 50.39", "shown = 50.39")
ONE = "float(gemm(np.eye(1), np.eye(1))[0, 0])"


def graded(question, answers, own="", lab=LAB):
    """The result of one question, with a cell of the student's own behind Question 1."""
    whole = with_answers(lab, answers)
    at = 1 + next(index for index, cell in enumerate(whole.cells) if cell.key == "q1_test")
    cells = [*whole.cells[:at], Cell("mine", "extra", own, own, "q1"), *whole.cells[at:]]
    return Judge(lab, TRUSTED).grade_question(question, replace(whole, cells=cells))


def run_for(question, answers):
    return [cell.key for cell in cells_for(LAB, question, with_answers(LAB, answers).cells)]


@pytest.mark.parametrize(
    "corner, own",
    [
        (f"corner = 50.39 * {ONE}", ""),
        ("def find():\n    return helper()\ncorner = find()", "def helper():\n    return 50.39"),
        ("corner = [helper() for _ in range(1)][0]", "import math\nhelper = lambda: math.prod([50.39])"),
        ("corner = 50.39 * exp(0)", "from math import *"),
        ("corner = half * 2", "def begin():\n    global half\n    half = 50.39 / 2\nbegin()"),
        ("corner = half * 2", "class Begin:\n    global half\n    half = 50.39 / 2"),
        ("def f():\n    global half\n    half *= 2\n    return half\ncorner = f()", "half = 50.39 / 2"),
        ("corner = C['half'] * 2", "C = {}\ndef keep(f): C[f.__name__] = f()\n@keep\ndef half(): return 50.39 / 2"),
        ("corner = half * 2", "print([half := x / 2 for x in [50.39]])"),
        (
            "corner = half * 2 + len(rest) + len(none)",
            "match [50.39 / 2, {}, []]:\n    case [half, {**rest}, [*none]]:\n        pass",
        ),
        ("corner = half * 2", "globals()['half'] = 50.39 / 2"),
        ("corner = half * 2", "%time half = 50.39 / 2"),
    ],
)
def test_names_from_before(corner, own):
    result = graded("q2_1", {"q2_1": corner}, own)
    assert result.earned == 3, result.tests[0].message


@pytest.mark.parametrize(
    "answer",
    [
        "a = np.eye(1)\n%time c = gemm(a, a)\nc",
        "a = np.eye(1)\ny = %time gemm(a, a)",
        "a = np.eye(1)\nt = %timeit -qo -n 1 gemm(a, a)",
        "a = np.eye(1)\n%prun -l 3 gemm(a, a)",
        "def refuse(a):\n    if a:\n        t = %timeit -o c = gemm(a, a)\n    return t",
    ],
)
def test_code_that_is_timed_reads_its_names(answer):
    assert run_for("b2_2", {"b2_2": answer}) == ["q1", "b2_2"]
    assert run_for("b2_2", {"q1": "other = 1", "q2_1": "corner = %time 1", "b2_2": answer}) == ["b2_2"]


@pytest.mark.parametrize(
    "timed", ["%time L.append(1)", "%time n = 0; L.append(n)", "t = %timeit -o n = 0; L.append(n)"]
)
def test_code_that_is_timed_changes_and_binds_what_it_would_elsewhere(timed):
    assert run_for("b2_2", {"q1": "L = []", "q2_1": timed, "b2_2": "L"}) == ["q1", "q2_1", "b2_2"]
    inside = f"def corner():\n    {timed}\ncorner()"
    assert run_for("b2_2", {"q1": "L = []", "q2_1": inside, "b2_2": "L"}) == ["q1", "q2_1", "b2_2"]
    answers = {"q1": "n = 1", "q2_1": timed, "b2_2": "n"}
    assert run_for("b2_2", answers) == ["q1", *["q2_1"] * timed.startswith("%time n"), "b2_2"]


def test_a_chain_of_answers():
    answers = {"q2_1": f"corner = 50.39 * {ONE}", "b2_2": "def refuse(x):\n    return x * corner"}
    assert run_for("b2_2", answers) == ["q1", "q2_1", "b2_2"]


@pytest.mark.parametrize(
    "first, answer",
    [
        ("n = 0", "n += 1"),
        ("n = [0]", "del n[0], n"),
        ("n = 0", "def refuse(x):\n    global n\n    n += 1"),
        ("n = {}", "n = {**n, 'more': 1}"),
        ("def n(): pass", "import functools\nn = functools.cache(n)"),
        ("def n(): pass", "old = n\ndef n(): old()"),
        ("n = 1", "m = [n for one in range(n)]\nn: int = 2"),
        ("n = 1", "for n in range(n): pass"),
        ("n = 1", "class C:\n    kept = n\nn = C"),
        ("n = 1", "def f(x=n): pass\nn = f"),
        ("n = 1", "match n:\n    case n: pass"),
        ("n = 1", "def f(): return n / 2\nn = f()"),
        ("n = 1", "class C:\n    def go(self): return n\nn = C().go()"),
        ("n = 1", "f = lambda: n\ng = lambda: f()\nn = g()"),
        ("n = 1", "def f(g): return n\n@f\ndef n(): pass"),
        ("n = 1", "def f():\n    global n\n    n += 1\nf()\nn = 2"),
        ("n = 1", "try: pass\nexcept ImportError as n: print(n)\nprint(n)\nn = 1"),
        ("n = ImportError", "try: pass\nexcept n as n: print(n)\nn = 1"),
    ],
)
def test_what_is_read_before_it_is_bound_comes_from_before(first, answer):
    assert run_for("b2_2", {"q1": first, "q2_1": "corner = 1", "b2_2": answer}) == ["q1", "b2_2"]
    assert run_for("b2_2", {"q1": "other = 1", "q2_1": "corner = 1", "b2_2": f"n = 1\n{answer}"}) == ["b2_2"]
    assert run_for("b2_2", {"q1": "other = 1", "q2_1": first, "b2_2": f"n = 1\n{answer}"}) == ["b2_2"]


@pytest.mark.parametrize(
    "first, between, answer",
    [
        ("C = {}", "C['s'] = 1", "C['s']"),
        ("C = {'s': {}}", "C['s']['t'] = 1", "C['s']"),
        ("L = []", "L.append(1)", "def refuse(x): return L"),
        ("L = []", "import heapq\nheapq.heappush(L, 1)", "L"),
        ("class C: pass", "C.s = 1", "C.s"),
        ("class C: pass", "setattr(C, 's', 1)", "C.s"),
        ("R = []\ndef keep(f): R.append(f)", "@keep\ndef f(): pass", "R"),
        ("R = []\ndef keep(f): R.append(f)\ndef more(f): keep(f)", "corner = more(1)", "R"),
        ("class R:\n    def add(f): pass", "@R.add\ndef f(): pass", "R"),
        ("n = 0\ndef more():\n    global n\n    n += 1", "more()", "n"),
        ("n = 0\ndef more():\n    global n\n    n = 1", "more()", "n"),
        ("R = []\ndef add(x):\n    x.append(1)\ndef more(x):\n    y = x\n    return add(y)", "corner = more(R)", "R"),
        ("class R:\n    def fit(self, x): self.n, x.w = 1, 2\nR, L = R(), R()", "corner = R.fit(L)", "L"),
        ("class R:\n    def get(self): self.n = 1\nR = R()", "corner = R.get()", "R"),
        ("L = [[]]", "for at, one in enumerate(L): one.append(1)", "L"),
        ("L = [[]]", "[one.append(1) for one in L]", "L"),
        ("L = []", "a = b, c = L, 3\nb.append(1)", "L"),
        ("L = []", "add = L.append\ncorner = add(1)", "L"),
        ("L = []", "import random\ncorner = random.shuffle(L)", "L"),
        ("L = np.zeros(3)", "corner = np.add(L, 1, out=L)", "L"),
        ("L = np.zeros(3)", "f = lambda: L.fill(1)\ncorner = f()", "L"),
        ("L = np.zeros(3)", "L.reshape(-1)[0] = 1", "L"),
        ("input = []", "input.append(1)", "input"),
        ("t = []", "t.append(1)\ndef corner():\n    import time as t", "t"),
    ],
)
def test_answers_that_change_what_an_answer_uses_are_run(first, between, answer):
    assert run_for("b2_2", {"q1": first, "q2_1": between, "b2_2": answer}) == ["q1", "q2_1", "b2_2"]
    assert run_for("b2_2", {"q1": first, "q2_1": between, "b2_2": "np.sum"}) == ["b2_2"]
    assert run_for("q2_1", {"q1": first, "q2_1": between, "b2_2": f"{answer}\nC = L = R = n = 1"}) == ["q1", "q2_1"]


@pytest.mark.parametrize(
    "source",
    [
        "x.mean()",
        "corner = x.reshape(-1)",
        "print(len(x), x.sum(), f'{x.item()}')",
        "np.testing.assert_allclose(x, 1)",
        "assert x.tolist() == np.asarray(x)",
        "y = x.mean()\ny += 1\nz = np.zeros(3)\nz[0] = 1",
        "def first(one): return one[0]\ncorner = first(x)",
        "class Keep:\n    def __init__(self, one): self.one = one\ncorner = Keep(x)",
    ],
)
def test_what_only_reads_changes_nothing(source):
    assert run_for("b2_2", {"q1": "x = np.ones(1)", "q2_1": source, "b2_2": "x"}) == ["q1", "b2_2"]


@pytest.mark.parametrize("ends", ["held.clear()\nraise SystemExit", "import os\nos._exit(3)"])
def test_an_answer_that_may_change_something_takes_no_points_of_another(ends):
    answers = {"q1": "held = [50.39]", "q2_1": f"held.append(1)\n{ends}"}
    answer = "def refuse(x):\n    if x < 0: raise ValueError('negative')\n    return x + 0 * held[0]"
    result = graded("b2_2", {**answers, "b2_2": answer})
    assert result.earned == 3 and not result.lost, result.tests[0].message
    result = graded("b2_2", {**answers, "b2_2": answer.replace("held[0]", "held[9]")})
    assert result.earned == 0


def test_an_answer_gets_one_try_where_those_before_it_ended_well(monkeypatch):
    tries, grade = [], Judge._graded
    monkeypatch.setattr(Judge, "_graded", lambda self, *given, **named: tries.append(1) or grade(self, *given, **named))
    result = graded("b2_2", {"q1": "held = [1]", "q2_1": "held.append(2)", "b2_2": "def refuse(x): return held"})
    assert result.earned == 0 and len(tries) == 1


def test_what_a_huge_cell_changes_is_not_looked_for():
    assert flow("x.a()\n" * 100).effects.asked == {"x"}
    assert flow("x.a()\n" * 10_000).effects == Effects()


def test_a_module_that_an_answer_changed_is_the_same_for_others():
    mine = "import numpy as np\nnp.mine = 1"
    for answer in ("np.mine", "import numpy as np\nnp.mine"):
        assert run_for("b2_2", {"q1": mine, "b2_2": answer}) == ["q1", "b2_2"]
    calls = "import numpy as np\nnp.seterr()\nprint(np)\ndef corner(): np.sum\ncorner()"
    assert run_for("b2_2", {"q2_1": calls, "b2_2": "import numpy as np\nnp.sum(print(1))"}) == ["b2_2"]


@pytest.mark.parametrize(
    "answer",
    [
        "def f(): return n\nn = 1\nf()",
        "def f():\n    global n\n    n = 1\nf()",
        "def f():\n    import math as n\n    return n\nf()\nn = 1",
        "def f():\n    def n(): pass\n    return n\nf()\nn = 1",
        "class C:\n    def sum(self): return n\nsum([])\nn = 1",
        "try:\n    import cupy\nexcept ImportError as n:\n    print(n)",
        "def f():\n    try:\n        import cupy\n    except ImportError as n:\n        print(n)\nf()",
        "n = 1\ntry: pass\nexcept ImportError as n: print(n)\nprint(n)",
    ],
)
def test_what_a_function_binds_or_reads_later_comes_from_nowhere_else(answer):
    assert run_for("b2_2", {"q1": "n = 1", "q2_1": "corner = 1", "b2_2": answer}) == ["b2_2"]


def test_a_name_that_an_except_binds_is_another_one_for_functions():
    answer = "try: pass\nexcept ImportError as n: print(n)\ndef refuse(x): return n"
    assert run_for("b2_2", {"q1": "n = 1", "q2_1": "corner = 1", "b2_2": answer}) == ["q1", "b2_2"]


def test_a_cell_behind_that_binds_the_name_again_does_not_hide_the_one_before():
    answers = {"q1": "scale = 2.0", "q2_1": "corner = 1", "b2_2": "K = scale * 1.0\ndef refuse(x):\n    return K"}
    cells = list(with_answers(LAB, answers).cells)
    again = "for scale in (1.0, 2.0):\n    print(scale)"
    found = cells_for(LAB, "b2_2", [*cells, Cell("mine", "extra", again, again, "b2_2")])
    assert [cell.key for cell in found] == ["q1", "b2_2", "mine"]


def test_what_a_function_reads_may_be_bound_behind_it():
    answers = {"q1": "def gemm(a, b):\n    return late(a)", "q2_1": "def late(a):\n    return a"}
    assert run_for("b2_2", {**answers, "b2_2": "def refuse(x):\n    return gemm(x, x)"}) == ["q1", "q2_1", "b2_2"]
    assert run_for("q1", answers) == ["q1"]


def test_a_sum_of_a_thousand_terms_reads_its_names():
    answer = "corner = " + " + ".join(["half"] * 2000)
    assert run_for("q2_1", {"q1": "half = 1", "q2_1": answer}) == ["q1", "q2_1"]


def test_a_name_that_a_needed_answer_binds_is_taken_from_nowhere_else():
    again = "corner = 50.39\ndef gemm(a, b):\n    return 0"
    assert run_for("q2_2", {"q2_1": again}) == ["q1", "q2_2"]


def test_only_what_is_used_is_run():
    own = "def gemm():\n    corner = 3\n    return corner\ncorner = 50.39 + 0 * gemm()"
    assert run_for("q2_1", {"q2_1": own}) == ["q2_1"]
    assert run_for("b2_2", {"q2_1": own}) == ["b2_2"]


@pytest.mark.parametrize(
    "source", ["def gemm(", "\x00", "(" * 500, "x = " + "-" * 100_000 + "1", "\ud800", "%%bash\ngemm"]
)
def test_any_text_can_be_a_cell(source):
    assert run_for("q2_1", {"q2_1": source}) == ["q2_1"]


def test_names_from_behind_are_not_there():
    result = graded("q1", {"q1": "def gemm(a, b):\n    return corner"})
    assert result.earned == 0 and "name 'corner' is not defined" in result.tests[0].message


def test_a_name_from_a_cell_that_only_shows_something_is_explained():
    lab = replace(LAB, cells=(*LAB.cells[:4], SHOWS, *LAB.cells[4:]))
    result = graded("q2_1", {"q2_1": "def corner():\n    return shown\ncorner = corner()"}, lab=lab)
    assert result.earned == 0 and "shown comes from a cell that only prints or plots." in result.tests[0].message
    result = graded("q2_1", {"q2_1": "corner = unheard_of"}, lab=lab)
    assert "unheard_of" in result.tests[0].message and "comes from" not in result.tests[0].message


@pytest.mark.parametrize(
    "own, answer, named",
    [
        ("1 / 0", "1 / 0\ncorner = 50.39", "q2_1"),  # the name comes from the second cell that stopped
        ("1 / 0", "def corner(", "q2_1"),  # that is not Python, but the cell that was handed out binds the name
        ("1 / 0\ndef helper():\n    return 3", "corner = helper()", "q2_1"),
        ("1 / 0\ndef helper():\n    return 3", "def corner():\n    return helper()", "mine"),
        ("1 / 0", "corner = 3", "mine"),  # no name is missing
    ],
)
def test_the_cell_that_is_named_is_the_one_that_should_have_bound_the_name(own, answer, named):
    whole = with_answers(LAB, {"q2_1": answer})
    at = next(index for index, cell in enumerate(whole.cells) if cell.key == "q2_1")
    cells = [*whole.cells[:at], Cell("mine", "extra", own, own, "q2_1"), *whole.cells[at:]]
    result = Judge(LAB, TRUSTED).grade_question("q2_1", replace(whole, cells=cells))
    assert f"(Cell {named} had stopped: " in result.tests[0].message, result.tests[0].message


def test_an_answer_that_is_not_written_is_said_to_be_that_though_another_stopped():
    stub = "def trace_of_product(a, b):\n    raise NotImplementedError('Question 2.2: write your code here')"
    result = graded("q2_2", {"q1": "def gemm(", "q2_2": stub})
    assert UNWRITTEN.fullmatch(result.tests[0].message), result.tests[0].message


@pytest.mark.parametrize(
    "own, last, found",
    [
        ("x = 1", "while True: pass", [1]),
        ("x = 1", "while x: pass", [0, 1]),
        ("x = 1", "import math\nmath.pi", [1]),
        ("def f():\n    return other", "while True: other = f()", [0, 1]),
        ("x = 1", "%time x\nwhile True: pass", [0, 1]),
    ],
)
def test_what_a_cell_uses_are_the_cells_that_share_a_name_with_it(own, last, found):
    codes = [own, last]
    assert related([Cell(str(at), "extra", code, code) for at, code in enumerate(codes)]) == tuple(
        as_python(codes[at]) for at in found
    )


def test_cells_that_change_what_a_cell_uses_belong_to_it():
    codes = ["held = []", "unused = 3", "more = held.append", "more(1)", "while not held: pass"]
    found = related([Cell(str(at), "extra", code, code) for at, code in enumerate(codes)])
    assert found == (codes[0], *codes[2:])


@pytest.mark.slow
def test_a_cell_that_never_ends_takes_its_time_once(monkeypatch):
    monkeypatch.setattr("rooflab.grading.judge.judge.AGAIN_S", 0.5)
    monkeypatch.setattr("rooflab.grading.judge.judge.EXPERIMENTS_S", 0.0)
    monkeypatch.setattr("rooflab.grading.jail.process.cpu_seconds", lambda _: time.monotonic())  # however busy it is
    cells = [replace(c, options={**c.options, "seconds": 4}) if c.role == "test" else c for c in LAB.cells]
    lab = replace(LAB, cells=tuple(cells))
    whole = with_answers(lab, {"q1": "while True: pass", "q2_1": "slow = 1\ncorner = 50.39"})
    results = list(Judge(lab, TRUSTED).grade(whole))
    assert [one.earned for one in results] == [0, 3, 0, 3]
    first, again = results[0], results[2]
    assert first.lost == again.lost == "The code took longer than 4 s. It was running cell q1."
    assert first.seconds > 4 and again.seconds < 4
