"""rl.compile: which calls share the launch of a reduction of rows, and which keep one of their own."""

import numpy as np
import pytest
from compiler.functions import as_list, check_same, counted
from compiler.rows import (
    bounds,
    layer_norm,
    loss,
    normed_softmax,
    operands,
    plain_softmax,
    residual_norm,
    rms_norm,
    shifted,
    softmax,
    statistics,
)

import rooflab as rl

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

RUNGS = ["", "v0_reference"]


def test_launches_and_bytes():
    x, y, weight, bias = operands((300, 130), "float32")
    for function, args, eager, compiled in (
        (loss, (x, y), 3, 1),
        (rms_norm, (x, weight), 7, 1),
        (softmax, (x,), 6, 1),
        (plain_softmax, (x,), 5, 1),
        (layer_norm, (x, weight, weight), 9, 1),
        (residual_norm, (x, y, weight), 7, 1),
        (normed_softmax, (x, weight, weight), 16, 1),
        (shifted, (x,), 7, 1),
        (statistics, (x, weight, bias), 8, 1),
    ):
        before, _ = counted(function, *args)
        after, _ = counted(rl.compile(function), *args)
        assert (before.launches, after.launches) == (eager, compiled), function.__name__
        assert after.flops == before.flops
    for function, args in (
        (statistics, (x, weight, bias)),
        (layer_norm, (x, weight, y[0])),
        (residual_norm, (x, y, weight)),
    ):
        after, results = counted(rl.compile(function), *args)
        assert after.bytes_read == sum(operand.nbytes for operand in args), function.__name__
        assert after.bytes_written == sum(r.nbytes for r in as_list(results)), function.__name__


@pytest.mark.parametrize("target", ["cpu", "H200"])
def test_tensors_without_memory_count_the_same(target):
    real, _ = counted(rl.compile(statistics), *(operands((256, 200), "float32")[i] for i in (0, 2, 3)))
    device = rl.meta(target)
    meta, results = counted(
        rl.compile(statistics),
        rl.empty(256, 200, device=device),
        rl.empty(200, device=device),
        rl.empty(256, device=device),
    )
    for figure in ("launches", "flops", "bytes_read", "bytes_written", "ops"):
        assert getattr(real, figure) == getattr(meta, figure), figure
    assert [r.shape for r in results] == [(256,), (256, 1), (256,), (256, 200)]


@pytest.mark.parametrize("shape, dims", [((255, 512), -1), ((512, 127), -1), ((256, 70000), -1), ((512, 256), 0)])
def test_elsewhere_the_reduction_has_its_own_kernels(shape, dims):
    """Few rows, short rows, very long rows, and columns."""
    function = rl.compile(lambda x: (x * 2).sum(dims))
    x = rl.empty(*shape, device=rl.meta("cpu"))
    c, _ = counted(function, x)
    assert c.launches == 2 and c.by_op["sum"].launches == 1


@pytest.mark.parametrize("variant", RUNGS)
def test_a_number_for_each_row_is_not_one_for_each_column(variant, device):
    """A square matrix less its rows' sums, which broadcast along its columns: (256,) beside (256, 256)."""
    x = rl.tensor(np.random.default_rng(0).standard_normal((256, 256)), dtype="float32", device=device)
    for function, launches in (
        (lambda x: x * 2 - (x * 2).sum(-1), 2),
        (lambda x: x * 2 - (x * 2).sum(-1)[None], 2),
        (lambda x: x * 2 - (x * 2).sum(-1, keepdim=True).T, 2),
        (lambda x: x * 2 - (x * 2).sum(-1)[:, None], 1),
        (lambda x: x * 2 - (x * 2).sum(-1).reshape(256, 1), 1),
        (lambda x: x * 2 - (x * 2).sum(-1, keepdim=True).flip(0), 3),
    ):
        check_same(function, x, variant=variant, **bounds(256))
        assert counted(rl.compile(function), x)[0].launches == launches


def test_rows_of_rows():
    """A number for each row is no number for a row of rows, and what is made of both reductions is not one chain."""
    x = rl.randn(256, 4, 128)

    def two_means(x):
        y = x * 2
        return y.mean(-1), y.mean((-2, -1))

    for function, launches in (
        (two_means, 2),
        (lambda x: x * 2 - (x * 2).mean(-1, keepdim=True) - (x * 2).mean((-2, -1), keepdim=True), 2),
        (lambda x: (x - x.amax(-1, keepdim=True)).sum((-2, -1)), 2),
        (lambda x: x - x.mean(-1, keepdim=True).mean(-2, keepdim=True), 3),
    ):
        check_same(function, x, **bounds(512))
        assert counted(rl.compile(function), x)[0].launches == launches


def test_a_reduction_alone_keeps_its_kernel():
    """Work on rows alone does not make it worth reducing in a chain; elements do."""
    x = rl.randn(256, 128)
    alone, _ = counted(rl.compile(lambda x: rl.exp(x.sum(-1, keepdim=True) * 0.01) + 1), x)
    assert alone.launches == 2 and alone.by_op["sum"].launches == 1
    fused, _ = counted(rl.compile(lambda x: x * (rl.exp(x.sum(-1, keepdim=True) * 0.01) + 1)), x)
    assert fused.launches == 1


def test_what_stands_between_two_passes_keeps_them_apart():
    """A product needs the rows whole, so what reads it cannot run in the same launch."""
    x, w = rl.randn(256, 128), rl.randn(128, 128)

    def between(x, w):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (centered @ w).amax(-1, keepdim=True)

    def around(x, w):
        weights = softmax(x @ w)
        return rl.matmul(weights * 2 - weights.sum(-1, keepdim=True), w) - x

    for function, fused, launches in ((between, 2, 3), (around, 1, 4)):
        check_same(function, x, w, steps=300, atol=1e-5)
        c, _ = counted(rl.compile(function), x, w)
        assert (c.by_op["fused"].launches, c.launches) == (fused, launches)


def test_too_much_for_a_kernel_is_cut():
    def many(x):
        y = x * 2
        return [(y + i).sum(-1) for i in range(6)]

    def long(x):
        s = (x * 2).sum(-1)
        for i in range(20):
            s = rl.tanh(s + i)
        return s

    def again(x):
        """Six reductions, elements of each of them, and more instructions on rows than a chain holds."""
        for _ in range(6):
            s = x.mean(-1, keepdim=True)
            for k in range(4):
                s = rl.tanh(s + k)
            x = x * 0.5 - s
        return x

    def late(x):
        """Many instructions on rows, and elements of the last: these are no chain without the reduction."""
        y = x * 2
        s = y.sum(-1, keepdim=True)
        for i in range(30):
            s = rl.tanh(s + i)
        return y - s

    x = rl.randn(256, 128)
    for function, launches in ((many, 3), (long, 2), (again, 3), (late, 3)):
        check_same(function, x, **bounds(128))
        c, _ = counted(rl.compile(function), x)
        assert c.launches == launches, function.__name__


def test_heads_that_share_a_mask():
    """They are joined by the mask only as far as one kernel takes their reductions."""

    def heads(mask, *scores):
        return [softmax(s + mask) for s in scores]

    mask = rl.empty(512, 512, device=rl.meta("H200"))
    for count, launches in ((1, 1), (2, 1), (3, 2), (8, 4)):
        scores = [rl.empty(512, 512, device=mask.device) for _ in range(count)]
        assert counted(rl.compile(heads), mask, *scores)[0].launches == launches


def test_norms_one_after_the_other():
    def norms(x, weight, bias, count):
        for _ in range(count):
            x = layer_norm(x, weight, bias)
        return x

    x, weight = rl.empty(512, 512, device=rl.meta("H200")), rl.empty(512, device=rl.meta("H200"))
    for count, launches in ((1, 1), (2, 1), (3, 2), (4, 2)):
        assert counted(rl.compile(norms), x, weight, weight, count)[0].launches == launches


def test_more_numbers_and_operands_than_a_kernel_takes():
    """They are cut, and nothing falls back."""

    def numbers(x):
        y = x
        for i in range(45):
            y = y + 0.1 * i
        s = y.mean(-1, keepdim=True)
        for i in range(12):
            s = s + 0.01 * i
        y = y - s
        for i in range(12):
            y = y + 0.001 * i
        return y

    def columns(x, c, *others):
        y = x
        for other in others:
            y = y + other
        return y.mean(-1) * c, y * c

    x = rl.randn(256, 128)
    check_same(numbers, x, steps=200, atol=1e-4)
    check_same(columns, x, rl.tensor(2.0), *(rl.randn(256, 1) for _ in range(14)), steps=200, atol=1e-4)
