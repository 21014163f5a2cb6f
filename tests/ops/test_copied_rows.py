"""Copies between arrays of every form: narrow and wide rows, reversed, spread out, repeated and turned, in elements of
1 to 8 bytes. Every instruction set gives NumPy's bits.
"""

import itertools

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

DTYPES = ("bool", "float16", "int32", "float64")  # of 1, 2, 4 and 8 bytes


def numbers(shape, dtype):
    x = np.arange(np.prod(shape)).reshape(shape) % 509
    return (x % 2 if dtype == "bool" else x).astype(dtype)


def both(shape, dtype):
    x = numbers(shape, dtype)
    return x, rl.tensor(x, dtype=dtype)


ROWS = {
    "reversed": (lambda x, t: x[:, ::-1], lambda x, t: rl.flip(t, (1,))),
    "upside down": (lambda x, t: x[::-1], lambda x, t: rl.flip(t, (0,))),
    "every second": (lambda x, t: x[:, ::2], lambda x, t: t[:, ::2].contiguous()),
    "every third": (lambda x, t: x[:, 1::3], lambda x, t: t[:, 1::3].contiguous()),
    "part": (lambda x, t: x[:, 1:], lambda x, t: t[:, 1:].contiguous()),
    "one column": (
        lambda x, t: np.broadcast_to(x[:, :1], x.shape),
        lambda x, t: t[:, :1].expand(*t.shape).contiguous(),
    ),
    "rolled": (lambda x, t: np.roll(x, 1, 1), lambda x, t: rl.roll(t, 1, 1)),
    "side by side": (lambda x, t: np.concatenate([x, x, x], 1), lambda x, t: rl.cat([t, t, t], 1)),
    "into columns": (lambda x, t: np.stack([x, x], -1), lambda x, t: rl.stack([t, t], -1)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ROWS)
def test_rows_of_every_width(form, dtype, instruction_sets):
    expected, copied = ROWS[form]
    for rows, width in itertools.product((3, 90), (*range(1, 11), 17, 33, 130)):
        x, t = both((rows, width), dtype)
        right = expected(x, t)
        for isa in instruction_sets():
            assert np.array_equal(copied(x, t).numpy(), right), f"{rows} x {width} {isa}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(7, 33, 65), (65, 3, 70), (2, 130, 9), (3, 4, 67, 5), (1024, 100), (300, 77), (2, 2048, 19)]
)
def test_dimensions_in_every_order(shape, dtype, instruction_sets):
    x, t = both(shape, dtype)
    for order in itertools.permutations(range(len(shape))):
        for isa in instruction_sets():
            assert np.array_equal(t.permute(*order).contiguous().numpy(), x.transpose(order)), f"{order} {isa}"


def test_blocks_that_begin_within_a_matrix(instruction_sets):
    x, t = both((40, 20, 30), "float32")
    for rows, columns in itertools.product((2, 17, 19), (2, 9, 29)):
        for isa in instruction_sets():
            for part, own in (
                (x[:, 1:rows, :columns], t[:, 1:rows, :columns]),
                (x[::2, :rows, 1:columns], t[::2, :rows, 1:columns]),
            ):
                assert np.array_equal((own + 1.0).numpy(), part + 1), f"{rows} x {columns} {isa}"
                assert np.array_equal(own.to("int64").numpy(), part.astype("int64")), f"{rows} x {columns} {isa}"


@pytest.mark.parametrize("shape", [(257, 1), (1, 257), (90, 16), (5, 7, 9), (4, 9, 70)])
def test_sums_with_one_column_of_each_row(shape, instruction_sets):
    x, t = both(shape, "float32")
    column = numbers((*shape[:-1], 1), "float32")
    for _ in instruction_sets():
        assert np.array_equal((t + rl.tensor(column)).numpy(), x + column)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_few_elements_forwards_and_backwards(name, dtype, instruction_sets):
    rng = np.random.default_rng(0)
    for n, dim in itertools.product((*range(1, 18), 33), (0, -1)):
        shape = (n, 41) if dim == 0 else (41, n)
        x, dy = (rl.tensor(rng.standard_normal(shape), dtype=dtype) for _ in range(2))
        wide = [rl.tensor(t.numpy().astype("f8"), requires_grad=True) for t in (x, dy)]
        getattr(rl, name)(wide[0], dim).backward(wide[1].detach())
        for isa in instruction_sets():
            own = x.detach().clone()
            own.requires_grad = True
            y = getattr(rl, name)(own, dim)
            y.backward(dy)
            allowed = 2e-6 if dtype == "float32" else 2e-2
            right = getattr(rl, name)(wide[0].detach(), dim).numpy()
            assert_close(y.detach(), right, rtol=allowed, atol=allowed, name=f"{n} {dim} {isa}")
            assert_close(own.grad, wide[0].grad.numpy(), rtol=2 * allowed, atol=2 * allowed, name=f"{n} {dim} {isa}")


def test_any_and_all_of_columns(instruction_sets):
    x = np.random.default_rng(0).random((9, 131)) < 0.8
    t = rl.tensor(x)
    for _ in instruction_sets():
        for rows in range(1, 10):
            assert np.array_equal(rl.any(t[:rows], 0).numpy(), x[:rows].any(0))
            assert np.array_equal(rl.all(t[:rows], 0).numpy(), x[:rows].all(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_become_columns_of_wider_rows(dtype, instruction_sets):
    """Rows of the result lie a kilobyte apart; the input's columns lie apart, or are all the same one."""
    x, t = both((2, 300, 70), dtype)
    for isa in instruction_sets():
        wide = rl.zeros(2, 70, 1024, dtype=dtype)
        wide[:, :, 5:305] = t.transpose(1, 2)
        found = wide.numpy()
        assert np.array_equal(found[:, :, 5:305], x.swapaxes(1, 2)), isa
        assert not found[:, :, :5].any() and not found[:, :, 305:].any(), isa
        assert np.array_equal(t[:, ::3].transpose(1, 2).contiguous().numpy(), x[:, ::3].swapaxes(1, 2)), isa
        one = t[0, 0].unsqueeze(1).expand(70, 40)
        assert np.array_equal(one.contiguous().numpy(), np.broadcast_to(x[0, 0][:, None], (70, 40))), isa
