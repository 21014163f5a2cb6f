"""The elementwise rungs of the CPU that go row by row: v2 takes rows without gaps and rows of one number, v1b rows that
are columns in memory. v1 gives what is expected, to the bit.
"""

import threading

import numpy as np
import pytest

import rooflab as rl
from rooflab.specs.elementwise import numbers
from rooflab.testing import to_float64

ROWS = [(1, 700), (3, 65), (33, 64), (70, 129), (1000, 17), (40, 1100)]
FLOATS = ["float64", "float32", "float16", "bfloat16"]
ON_ALL = ["lt", "eq", "where"]
ON_NUMBERS = [*ON_ALL, "add", "sub", "mul", "maximum"]
ON_FLOATS = [*ON_NUMBERS, "geglu", "relu_backward"]


def same_bits(one, other):
    return np.array_equal(to_float64(one), to_float64(other), equal_nan=True) and one.dtype == other.dtype


def tensor(name, shape, dtype, seed=0):
    x = numbers(np.random.default_rng(seed), name, shape, special=dtype in FLOATS)
    return rl.tensor(x > 0 if dtype == "bool" else x, dtype=dtype)


def rows(shape, dtype):
    """Operands that lie in rows: without gaps, as a part of longer ones, a row and a column for all, and numbers."""
    r, c = shape
    yield "bias", tensor("add", shape, dtype), tensor("add", (c,), dtype, 1)
    yield "a number for each row", tensor("add", shape, dtype), tensor("add", (r, 1), dtype, 1)
    yield "parts of rows", tensor("add", (r, c + 5), dtype)[:, 3 : 3 + c], tensor("add", shape, dtype, 1)
    yield "one number", tensor("add", (1, 1), dtype).expand(r, c), tensor("add", shape, dtype, 1)
    yield "a batch", tensor("add", (2, 3, c), dtype), tensor("add", (3, 1), dtype, 1)
    yield "that begin anywhere", tensor("add", (r * c + 1,), dtype)[1:], 2.5


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", ROWS, ids=str)
def test_rows_without_gaps_and_rows_of_one_number(shape, dtype, two_threads):
    for kind, a, b in rows(shape, dtype):
        for op in ("add", "mul", "geglu"):
            one, other = (getattr(rl, op)(a, b, variant=v) for v in ("v2_contiguous", "v1_staged"))
            assert same_bits(one, other), (kind, op)
    out, other = (rl.zeros(shape[0], shape[1] + 3, dtype=dtype)[:, 2:-1] for _ in "ab")
    x = tensor("add", shape, dtype)
    for view, variant in ((out, "v2_contiguous"), (other, "v1_staged")):
        view.copy_(rl.clamp(x, -1, 2, variant=variant))
        rl.mul(view, x, variant=variant)
    assert same_bits(out, other)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_power_does_not_depend_on_its_neighbours(dtype, two_threads):
    """Squares, cubes, quotients, roots and powers of 2 have short cuts."""
    x, rng = tensor("pow", (900, 70), dtype), np.random.default_rng(0)
    x[::3] = 2.0
    exponent = rl.tensor(rng.choice([2.0, 3.0, 2.5, -1.0, -2.0, 0.5, -0.5, np.nan], (900, 1)), dtype=dtype)
    for shape in ((900, 70), (900, 1)):
        y = exponent.expand(*shape).contiguous()
        one, other = (rl.pow(x, y, variant=v) for v in ("v2_contiguous", "v1_staged"))
        assert same_bits(one, other)
        assert same_bits(one[:7], rl.stack([rl.pow(x[i], float(y[i, 0])) for i in range(7)]))
        assert same_bits(one[:7, :3], rl.pow(x[:7, :3].contiguous(), y[:7, :3]))
        rl.set_num_threads(1)
        assert same_bits(one, rl.pow(x, y, variant="v2_contiguous"))
        rl.set_num_threads(2)


@pytest.mark.parametrize("count", [5000, 9_000_000])
@pytest.mark.parametrize("begin", [1, 2, 4, 12])
def test_memory_that_begins_at_any_byte(begin, count):
    memory = np.zeros(4 * count + 128, np.uint8)
    begin += -memory.ctypes.data % 64
    numbers = memory[begin : begin + 4 * count].view(np.float32)
    x = rl.from_numpy(numbers)
    x += rl.arange(count, dtype="float32")
    x *= 0.5
    assert np.array_equal(numbers, np.arange(count, dtype=np.float32) / 2)
    assert not memory[:begin].any() and not memory[begin + 4 * count :].any()


@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_rows_that_the_caches_do_not_hold(dtype, two_threads):
    """Lines that two rows share are not written past the caches."""
    count = (34 << 20) // rl.empty(1, dtype=dtype).nbytes
    x = rl.randn(count // 1027, 1027).to(dtype)
    for b in (rl.randn(1027).to(dtype), rl.randn(count // 1027, 1).to(dtype)):
        one, other = (rl.add(x, b, variant=v).numpy() for v in ("v2_contiguous", "v1_staged"))
        assert one.tobytes() == other.tobytes()
    one = rl.cast(x, "float64").numpy()  # v1, in four streams
    assert np.array_equal(one, to_float64(x))


@pytest.mark.slow(shape=[(530, 515)], dtype=["float64", "float16", "int64", "int32"])
@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32", "bool"])
@pytest.mark.parametrize("shape", [*ROWS[1:], (2, 3), (530, 515)], ids=str)
def test_columns_in_place_of_rows(shape, dtype, two_threads):
    """Each operand in turn, and all but the first, is `.T` of what lies in memory; of batches, each matrix is."""
    for op in ON_FLOATS if dtype in FLOATS else ON_ALL if dtype == "bool" else ON_NUMBERS:
        dtypes = ["bool", dtype, dtype] if op == "where" else [dtype, dtype]
        for batch in ((), (3,)):
            inputs = [tensor("lt", (*batch, *shape), kind, seed) for seed, kind in enumerate(dtypes)]
            turned = [x.transpose(-1, -2).contiguous().transpose(-1, -2) for x in inputs]
            expected = getattr(rl, op)(*inputs, variant="v1_staged")
            for which in [{k} for k in range(len(inputs))] + [{1, 2}]:
                operands = [turned[k] if k in which else x for k, x in enumerate(inputs)]
                found = getattr(rl, op)(*operands, variant="v1b_turned")
                assert same_bits(found, expected), (op, batch, which)


@pytest.mark.parametrize("columns", [20, 700])
def test_columns_that_other_dimensions_part(columns, two_threads):
    x, y = tensor("add", (70, 3, columns), "float32"), tensor("add", (columns, 3, 70), "float32", 1)
    found = rl.add(x, y.permute(2, 1, 0), variant="v1b_turned")
    assert same_bits(found, rl.add(x, y.permute(2, 1, 0).contiguous(), variant="v1_staged"))


def test_columns_of_rows_of_several_lengths(two_threads):
    condition, x, y = tensor("lt", (70, 600), "bool"), tensor("add", (600, 70), "float32"), rl.randn(600, 75)[:, 3:73]
    found = rl.where(condition, x.T, y.T, variant="v1b_turned")
    assert same_bits(found, rl.where(condition, x.T.contiguous(), y.T.contiguous(), variant="v1_staged"))


@pytest.mark.parametrize("other", ["float64", "float16", "int32"])
def test_columns_of_another_dtype(other, two_threads):
    x, y = tensor("add", (600, 70), "float32"), tensor("lt", (70, 600), other)
    assert same_bits(rl.mul(x, y.T, variant="v1b_turned"), rl.mul(x, y.T.contiguous(), variant="v1_staged"))
    assert same_bits(rl.lt(x, y.T, variant="v1b_turned"), rl.lt(x, y.T.contiguous(), variant="v1_staged"))


def test_columns_on_a_thread_with_a_small_stack():
    x, y, found = tensor("add", (600, 700), "float64"), tensor("add", (700, 600), "float64", 1), []
    before = threading.stack_size(192 << 10)
    try:
        thread = threading.Thread(target=lambda: found.append(rl.maximum(x, y.T, variant="v1b_turned")))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert same_bits(found[0], rl.maximum(x, y.T.contiguous()))


@pytest.mark.parametrize(
    ("call", "rung"),
    [
        (lambda x: x(9, 64) + x(64), "v2_contiguous"),
        (lambda x: x(9, 63) + x(63), "v2_contiguous"),
        (lambda x: x(9, 48) + x(48), "v2_contiguous"),
        (lambda x: x(9, 47) + x(47), "v1_staged"),  # a row that repeats is laid out once
        (lambda x: x(9, 47).bfloat16() + x(47).bfloat16(), "v2_contiguous"),
        (lambda x: x(9, 33) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 32) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 31) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 24) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 23) * x(9, 1), "v1_staged"),  # a second vector would be mostly empty
        (lambda x: x(9, 33)[:, :32] + 1.0, "v2_contiguous"),
        (lambda x: x(9, 36)[:, :35] + 1.0, "v2_contiguous"),
        (lambda x: x(9, 12) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 11) * x(9, 1), "v1_staged"),
        (lambda x: x(9, 65)[:, :64].exp(), "v2_contiguous"),
        (lambda x: x(9, 64)[:, :63].exp(), "v1_staged"),  # many instructions for the numbers that are missing
        (lambda x: x(9, 64) * x(9, 1), "v2_contiguous"),
        (lambda x: x(9, 64) + x(9, 128)[:, ::2], "v1_staged"),
        (lambda x: x(8, 9) + x(9, 8).T, "v1b_turned"),
        (lambda x: x(9, 7) + x(7, 9).T, "v1_staged"),
        (lambda x: rl.where(x(9, 70) > 0, x(70, 9).T, 0.0), "v1b_turned"),
        (lambda x: x(4, 9, 70) + x(4, 70, 9).transpose(1, 2), "v1b_turned"),
    ],
)
def test_which_runs_by_default(call, rung):
    with rl.profile() as profile:
        call(rl.zeros)
    assert profile.kernels[-1].name == f"elementwise_cpu_{rung}"
