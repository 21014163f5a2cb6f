"""Chains of operands that a GPU cannot read 16 bytes at a time: odd rows, rows that begin anywhere, repeated ones."""

import numpy as np
import pytest
from compiler.functions import check_same
from compiler.rows import bounds, layer_norm, softmax

import rooflab as rl

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns

WIDTHS = [1, 3, 8, 33, 130, 1001]


def random(*shape, dtype, device, low=0.5):
    """Numbers between `low` and 2; sums of positive ones do not cancel."""
    rng = np.random.default_rng(sum(shape))
    return rl.tensor(rng.uniform(low, 2, shape), device=device).to(dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("columns", WIDTHS)
def test_rows_of_any_length(columns, dtype, device):
    x, z, wide, row, column = (
        random(*shape, dtype=dtype, device=device)
        for shape in ((37, columns), (columns, 37), (37, columns + 3), (columns,), (37, 1))
    )
    number = x[2, 0]
    for function, args in (
        (lambda x, row: (x + row) * 2, (x, row)),
        (lambda x, column: (x + column) * 2, (x, column)),
        (lambda x, number: (x + number) * 2, (x, number)),
        (lambda x, y, row: x * y + row, (x, wide[:, 3:], row)),
        (lambda x, y, row: x * y + row, (wide[:, :-3], wide[:, 1:-2], row)),
        (lambda x, y: x * 2 + y, (x[1:], x[:-1])),  # both contiguous, one of them not aligned
        (lambda x, z: x * 2 + z.T, (x, z)),
        (lambda x, row: x.to("float64") * row, (x, row)),
    ):
        check_same(function, *args, dtype=dtype)


@pytest.mark.parametrize("shape", [(5, 7, 33), (5, 3, 2), (2, 3, 4, 5), (3, 1, 1001)], ids=str)
def test_operands_that_repeat_in_any_dimension(shape, device):
    x = random(*shape, dtype="bfloat16", device=device)
    for kept in range(1 << len(shape)):
        operand = random(*(n if kept >> d & 1 else 1 for d, n in enumerate(shape)), dtype="bfloat16", device=device)
        check_same(lambda x, y: (x + y) * 2, x, operand, dtype="bfloat16")


@pytest.mark.slow(columns=[20011], dtype=["float16"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("columns", [129, 1001, 20011])
def test_rows_that_are_reduced_begin_anywhere(columns, dtype, device):
    wide, row = (random(*shape, dtype=dtype, device=device, low=-2) for shape in ((300, columns + 3), (columns,)))
    apart = bounds(columns, dtype)
    for x in (wide[:, 3:], wide[:, 1:-2], wide[:, :-3]):
        check_same(softmax, x, dtype=dtype, steps=apart["steps"])
        check_same(layer_norm, x, row, row, dtype=dtype, **apart)
