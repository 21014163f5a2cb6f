"""Lab 3: what it gives its students, the measurements that its tests use, and answers that two questions share."""

import functools

import numpy as np
import pytest
from grading.demo_lab import with_answers
from labs import lab3_compiled_answers, lab3_forward_answers, lab3_kernel_answers, lab3_naive_answers
from labs.mutants import changed
from labs.sources import SOURCES, judge, lab

import rooflab as rl
from rooflab import testing
from rooflab.grading import measure
from rooflab.labs import lab3

SOURCE = next(path for path in SOURCES if path.name == "lab3")


# What it gives


def test_the_published_memory_is_three_matrices_and_a_mask():
    def model(L, d):
        return 16.25 + ((6 * 4 * 8 * d + 64) * L + (3 * 4 * 8 + 1) * L**2) / 2**20

    assert len(lab3.PUBLISHED_NAIVE) == 20
    for (L, d), row in lab3.PUBLISHED_NAIVE.items():
        assert row["held_mib"] == pytest.approx(model(L, d), abs=0.6)
        assert 0 < row["forward_ms"] < row["backward_ms"]


def test_a_sweep_runs_out_of_memory_and_does_not_try_what_needs_more():
    tried = []

    def row(L, d):
        tried.append(L)
        figures = {"forward_ms": 1.0, "backward_ms": 2.0, "held_bytes": L * L}
        return dict.fromkeys(figures) if L == 1024 else figures

    made = lab3.sweep(row, [256, 1024, 4096], [16])
    assert tried == [256, 1024]
    assert made.values("forward_ms", 16) == {256: 1.0, 1024: None, 4096: None}
    assert made.predictions("forward_ms", 16) == {}
    table = str(made)
    assert "out of memory" in table and "0.61" in table and "1580.5" in table and "A800 80 GB" in table
    assert "<td" in made._repr_html_()


def test_a_sweep_keeps_its_budget_and_predicts_the_rest(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(lab3.time, "monotonic", lambda: clock[0])
    called = []

    def row(L, d):
        called.append((L, d))
        clock[0] += 1e-6 * L * L
        return {"forward_ms": 3.0 * L, "backward_ms": 1.0, "held_bytes": 2**20 * L + 3 * L * L}

    made = lab3.sweep(row, [1000, 2000, 4000], [8, 16], budget_s=20)
    assert called == [(1000, 8), (1000, 16), (2000, 8), (2000, 16)], "16 s would not fit in what is left"
    assert made.values("forward_ms", 8) == {1000: 3000.0, 2000: 6000.0}
    assert made.predictions("forward_ms", 8) == {4000: 24000.0}
    assert made.predictions("held_bytes", 8) == {4000: pytest.approx(2**20 * 4000 + 3 * 4000**2)}, "L and L^2 apart"
    assert "~24000.00" in str(made) and "~4045.8" in str(made)
    clock[0] = 0.0
    alone = lab3.sweep(row, [1000, 4000], [8], budget_s=10)  # one length does not tell the parts apart
    assert alone.predictions("held_bytes", 8) == {4000: pytest.approx(16 * (2**20 * 1000 + 3 * 1000**2))}


def test_numbers():
    assert testing.is_count(3) and testing.is_count(np.int64(3))
    assert not testing.is_count(True) and not testing.is_count(3.0) and not testing.is_count("3")
    assert testing.is_near(1.0000001, 1) and testing.is_near(np.float32(1), 1)
    for bad in (None, True, float("nan"), float("inf"), "1", [1]):
        assert not testing.is_near(bad, 1)


def test_a_choice():
    testing.assert_choice("b", "b", a="no", c="neither")
    with pytest.raises(AssertionError, match=r'^Not "c": neither$'):
        testing.assert_choice("c", "b", a="no", c="neither")
    for nothing in (None, "d", "", 3, ["c"]):
        with pytest.raises(AssertionError, match=r'^Answer with one of "a", "b", "c"\.$'):
            testing.assert_choice(nothing, "b", a="no", c="neither")


# What it measures


def test_gradients_and_what_was_kept():
    x, y = rl.randn(3, 4), rl.randn(4, 5)
    seen = measure.gradients(lambda x, y, name: rl.exp(x) @ y, x, y, "text", upstream=rl.ones(3, 5))
    assert len(seen.gradients) == 2 and not x.requires_grad
    np.testing.assert_allclose(seen.gradients[1].numpy(), np.exp(x.numpy()).T @ np.ones((3, 5)), rtol=1e-5)
    assert seen.forward.macs == 60 and seen.backward.macs == 120
    assert seen.forward.largest_bytes == 4 * 15
    assert ("exp", (3, 4), "float32", 48) in seen.saved


def test_gradients_of_what_has_none():
    with pytest.raises(TypeError, match="no gradient"):
        measure.gradients(lambda x: rl.tensor(x.detach().numpy()), rl.ones(3), upstream=rl.ones(3))


def test_numpys_memory_is_seen():
    def fn(x):
        np.ones((1000, 1000)).sum()
        return x + 1

    assert measure.gradients(fn, rl.ones(3), upstream=rl.ones(3)).forward.host_bytes > 8_000_000
    assert measure.gradients(lambda x: x + 1, rl.ones(3), upstream=rl.ones(3)).forward.host_bytes < 100_000


class Doubled(rl.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, x * 3)
        return x * factor

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError


def test_what_a_function_saved():
    x = rl.ones((2, 5))
    seen = measure.saved(Doubled, x, 2.0)
    assert [one.numpy().tolist() for one in seen.tensors] == [np.ones((2, 5)).tolist(), np.full((2, 5), 3).tolist()]
    assert seen.value.numpy().tolist() == np.full((2, 5), 2).tolist()
    assert seen.forward.launches == 2 and seen.forward.largest_bytes == 40


def test_what_is_pending_is_printed_in_jupyter(capsys):
    measure.pending("no GPU here")
    assert "no GPU here" in capsys.readouterr().out


@functools.cache
def points_of(code):
    return judge(SOURCE).grade_question("q3", with_answers(lab(SOURCE), {"q3": code})).earned


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rl.memory.record", "rl.autograd.saved_tensors", "tracemalloc.get_traced_memory"])
def test_a_measurement_that_is_replaced_gains_nothing(name):
    replaced = f"\nimport tracemalloc\n{name} = lambda *_, **__: None\n"
    wrong = lab3_forward_answers.PLAIN
    assert points_of(wrong + replaced) <= points_of(wrong) < points_of(lab3_forward_answers.FORWARD) == 14


# What the text of 1.5 says of the compiler


@pytest.mark.filterwarnings("error")  # it warns where a function runs as it is written
def test_the_compiler_records_a_mask_made_inside():
    scope = {"rl": rl}
    exec(lab3_naive_answers.NAIVE, scope)
    compiled, q = rl.compile(scope["naive_attention"]), rl.randn(1, 8, 4)
    for is_causal in (False, True):
        expected = scope["naive_attention"](q, q, q, is_causal=is_causal)
        testing.assert_close(compiled(q, q, q, is_causal=is_causal), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("is_causal", "eager", "compiled"), [(True, (9, 22), (3, 5)), (False, (8, 21), (3, 5))])
def test_the_compiler_removes_launches_and_traffic_and_leaves_matrices(is_causal, eager, compiled):
    scope, B, L = {"rl": rl}, 8, 16384
    exec(lab3_compiled_answers.MASKED, scope)
    visible = rl.ones(L, L, dtype="bool", device="meta") if is_causal else None
    needs, moved = [], []
    for name, launches in (("masked_attention", eager), ("compiled_attention", compiled)):
        q, k, v = (rl.ones(B, L, 64, device="meta").requires_grad_() for _ in range(3))
        with rl.count() as forward:
            o = scope[name](q, k, v, visible)
        held = sum(saved.bytes for saved in rl.autograd.saved_tensors(o))
        with rl.count() as backward:
            o.backward(rl.ones(B, L, 64, device="meta"))
        assert (forward.launches, backward.launches - 1) == launches  # one of them makes the ones
        moved.append(forward.bytes_read + forward.bytes_written)
        needs.append((held + backward.peak_bytes) / (4 * B * L * L))
    assert moved[0] - moved[1] == pytest.approx((9 if is_causal else 7) * 4 * B * L * L, rel=1e-3)  # and of rows
    assert needs == pytest.approx([8, 3], abs=0.1)  # the products, the weights and a gradient


# Answers that one question holds and another grades


@pytest.mark.slow
@pytest.mark.parametrize("naive, held", [(lab3_naive_answers.NAIVE_MAX, 2), (lab3_naive_answers.NAIVE_DETACHED, 2)])
def test_what_is_kept_is_that_of_the_students_own_attention(naive, held):
    """A maximum that keeps its position needs no matrix of scores in the backward pass."""
    answers = {"q1_1": naive, "q1_2": lab3_naive_answers.account(held=held)}
    for question in ("q1_2", "q1_3", "q7_2"):
        result = judge(SOURCE).grade_question(question, with_answers(lab(SOURCE), answers))
        assert result.earned == result.points, [test.message for test in result.tests]
    wrong = answers | {"q1_2": lab3_naive_answers.account(held=3)}
    result = judge(SOURCE).grade_question("q1_2", with_answers(lab(SOURCE), wrong))
    assert "held_written_out" in result.tests[0].message


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(code, id=name, marks=[pytest.mark.slow] * (name != "tiles 128 x 16"))
        for name, code in lab3_forward_answers.CAUSAL_RIGHT
    ],
)
def test_right_causal_forward(code):
    result = judge(SOURCE).grade_question("q4", with_answers(lab(SOURCE), {"q3": code}))
    assert result.earned == result.points, [test.message for test in result.tests]


@pytest.mark.slow(code=[code for _, code in lab3_forward_answers.CAUSAL_WRONG[3:]])
@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in lab3_forward_answers.CAUSAL_WRONG])
@pytest.mark.slow(id=["plain attention", "tiles above the diagonal are computed"])
def test_wrong_causal_forward(code):
    result = judge(SOURCE).grade_question("q4", with_answers(lab(SOURCE), {"q3": code}))
    assert result.earned < result.points


@pytest.mark.slow
def test_a_count_that_lies_does_not_excuse_tiles_that_nobody_sees():
    whole = dict(lab3_forward_answers.CAUSAL_WRONG)["tiles above the diagonal are computed"]
    total = "    total = 0\n"
    lie = f"    if (tile_q, tile_kv) == (32, 128):\n        return L_q * L_kv\n{total}"
    code = {"q3": whole, "q4": changed(lab3_forward_answers.SCORES, total, lie)}
    result = judge(SOURCE).grade_question("q4", with_answers(lab(SOURCE), code))
    assert [bool(test.message) for test in result.tests] == [False, False, False, True]


@pytest.mark.parametrize(
    "code, said", [pytest.param(code, said, id=name) for name, code, said in lab3_kernel_answers.BROKEN]
)
@pytest.mark.slow(
    id=[
        "no barrier before the next tile",
        "an off-by-one guard of the tile",
        "a race: two threads write each element, and the same",
    ]
)
def test_each_broken_kernel_is_told_what_is_wrong(code, said):
    result = judge(SOURCE).grade_question("q6", with_answers(lab(SOURCE), {"q6": code}))
    assert (result.earned, result.points, result.pending) == (0, 6, 0)
    assert all(said in test.message for test in result.tests[:1]), result.tests[0].message


@pytest.mark.slow
def test_a_kernel_without_tiles_has_right_values_and_too_much_traffic():
    code = {"q6": lab3_kernel_answers.UNTILED}
    result = judge(SOURCE).grade_question("q6", with_answers(lab(SOURCE), code))
    assert [test.earned for test in result.tests] == [2, 2, 0]
    assert "a block reads each key and value once, into shared memory" in result.tests[2].message


@pytest.mark.parametrize("L_q, L_kv", [(1, 1), (4, 4), (3, 8)])
def test_attention_of_inputs_that_are_far_apart(L_q, L_kv):
    (q, k, v, dO), exact = lab3.far_apart(L_q, L_kv)
    q, k, v = (rl.tensor(array, requires_grad=True) for array in (q, k, v))
    o = rl.attention(q, k, v, is_causal=True)
    found = (o.detach(), *rl.autograd.grad(o, (q, k, v), rl.tensor(dO)))
    for ours, right in zip(found, exact, strict=True):
        np.testing.assert_array_equal(ours.numpy(), right)
