"""What compiled functions count: launches, bytes and memory, before and after; and which calls share a launch."""

import math

import pytest
from compiler.functions import counted, gelu_of_eight, mlp

import rooflab as rl
from rooflab.specs import unit_roundoff
from rooflab.testing import assert_close, to_float64

pytestmark = pytest.mark.filterwarnings("error")  # falling back warns


def test_gelu_of_eight_ops_is_one_launch_of_two_bytes_an_element():
    x = rl.randn(256, 256)
    before, _ = counted(gelu_of_eight, x)
    compiled = rl.compile(gelu_of_eight)
    for _ in range(2):  # recording counts nothing
        after, y = counted(compiled, x)
        assert (before.launches, after.launches) == (8, 1)
        assert (after.ops, after.host_calls, after.allocations) == (1, 1, 1)
        assert after.bytes_read + after.bytes_written == 2 * x.nbytes
        assert after.flops == before.flops == 8 * x.numel()
        assert after.bytes_allocated == after.peak_bytes == y.nbytes
    assert set(after.by_op) == {"fused"}


def test_matmuls_of_an_mlp_stay_and_the_rest_is_one_launch():
    x, gate, up, down = rl.randn(32, 64), rl.randn(64, 96), rl.randn(64, 96), rl.randn(96, 64)
    before, expected = counted(mlp, x, gate, up, down)
    after, y = counted(rl.compile(mlp), x, gate, up, down)
    assert (before.launches, after.launches) == (5, 4)
    assert {op: counts.launches for op, counts in after.by_op.items()} == {"matmul": 3, "fused": 1}
    assert after.macs == before.macs and after.flops == before.flops
    hidden = 32 * 96 * 4  # bytes, which the silu wrote and the product read again
    assert (before.bytes_read - after.bytes_read, before.bytes_written - after.bytes_written) == (hidden, hidden)
    assert_close(y, to_float64(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("target", ["cpu", "H200"])
def test_tensors_without_memory_count_the_same(target):
    shapes = ((32, 64), (64, 96), (64, 96), (96, 64))
    compiled = rl.compile(mlp)
    real, _ = counted(compiled, *(rl.ones(*shape) for shape in shapes))
    meta, y = counted(compiled, *(rl.ones(*shape, device=rl.meta(target)) for shape in shapes))
    assert y.device == rl.meta(target)
    for field in ("launches", "ops", "flops", "bytes_read", "bytes_written"):
        assert getattr(real, field) == getattr(meta, field), field
    if target == "cpu":
        assert (real.allocations, real.peak_bytes) == (meta.allocations, meta.peak_bytes)


def test_operands_are_counted_once_however_often_they_are_read():
    x = rl.randn(64, 64)
    c, _ = counted(rl.compile(lambda x, y: (x + y) * x.T), x, x)
    assert (c.launches, c.bytes_read) == (1, x.nbytes)
    c, _ = counted(rl.compile(lambda x, row: x * row + row), x, rl.randn(64))
    assert c.bytes_read == x.nbytes + 64 * 4


def test_what_nobody_reads_is_not_run():
    def wasteful(x):
        rl.exp(x) @ x
        return x + 1

    c, _ = counted(rl.compile(wasteful), rl.randn(8, 8))
    assert (c.launches, c.macs) == (1, 0)


def test_a_chain_does_not_wait_for_its_own_result():
    def function(x):
        a = x * 2
        b = a.sum(0)  # runs between the two chains
        return a + b

    c, y = counted(rl.compile(function), x := rl.randn(16, 16))
    assert c.launches == 3
    assert_close(y, to_float64(function(x)), rtol=1e-5, atol=1e-5)


def test_siblings_share_a_launch_and_a_read():
    x = rl.randn(64, 64)
    c, (a, b) = counted(rl.compile(lambda x: (x * 2, rl.exp(x))), x)
    assert (c.launches, c.bytes_read, c.bytes_written) == (1, x.nbytes, 2 * x.nbytes)
    assert (a.tolist(), b.tolist()) == ((x * 2).tolist(), rl.exp(x).tolist())


def test_a_filled_tensor_is_a_number_of_the_chain():
    def function(x):
        return (x + rl.full((8, 8), 0.1, dtype=x.dtype, device=x.device)) * rl.ones(8, dtype=x.dtype, device=x.device)

    for dtype in ("float32", "bfloat16", "int32"):
        if dtype == "int32":
            x, function = (
                rl.randint(0, 9, (8, 8), dtype=dtype),
                lambda x: x * rl.full(8, 3, dtype="int32", device=x.device),
            )
        else:
            x = rl.randn(8, 8).to(dtype)
        c, y = counted(rl.compile(function), x)
        assert (c.launches, c.bytes_read) == (1, x.nbytes)
        assert_close(y, to_float64(function(x)), rtol=2 * unit_roundoff("bfloat16") * (dtype == "bfloat16"), atol=1e-7)


@pytest.mark.parametrize(
    "arguments", [(16,), (3, 19), (40, 8, -2), (0.0, 1.6, 0.1), (0.0, -4.0, -0.25), (5, 5.9, 1 / 17)], ids=str
)
@pytest.mark.parametrize("dtype", [None, "float32", "bfloat16", "int64"])
@pytest.mark.filterwarnings("error")  # falling back warns
def test_numbers_counted_up_inside_are_made_by_ops(arguments, dtype):
    if dtype == "int64":
        arguments = [int(20 * number) for number in arguments]  # integers hold no fractions
    made = rl.arange(*arguments, dtype=dtype)
    x = rl.zeros(*made.shape, dtype=made.dtype)
    for where in ({}, {"device": "cpu"}):
        c, y = counted(rl.compile(lambda x: x + rl.arange(*arguments, dtype=dtype, **where)), x)  # noqa: B023
        assert y.tolist() == made.tolist() and y.dtype == made.dtype
        assert c.launches <= 4
    c, y = counted(
        rl.compile(lambda x: x * rl.ones(*x.shape, dtype=x.dtype) + rl.arange(len(x), device=x.device).to(x)), x
    )
    assert y.tolist() == rl.arange(len(x)).to(x).tolist()


def test_long_and_wide_chains_are_cut():
    def long(x):
        for i in range(150):
            x = x * 0.99 + 0.001 * i
        return x

    def wide(*xs):
        return sum(xs[1:], xs[0]) * 2

    x = rl.randn(500)
    c, y = counted(rl.compile(long), x)
    assert 4 < c.launches < 12
    assert_close(y, to_float64(long(x)), rtol=1e-4, atol=1e-4)
    xs = [rl.randn(50) for _ in range(40)]
    c, y = counted(rl.compile(wide), *xs)
    assert 2 < c.launches < 8
    assert_close(y, to_float64(wide(*xs)), rtol=1e-4, atol=1e-4)
    many = rl.compile(lambda x: [x * i for i in range(20)])
    assert [y.tolist() for y in many(x)] == [(x * i).tolist() for i in range(20)]


def test_intermediates_are_freed_when_they_were_read():
    def chain(x, w):
        for _ in range(6):
            x = rl.relu(x @ w)
        return x

    x, w = rl.randn(64, 64), rl.randn(64, 64)
    before, _ = counted(chain, x, w)
    after, _ = counted(rl.compile(chain), x, w)
    assert after.peak_bytes <= before.peak_bytes


@pytest.mark.parametrize("numbers", [(), (7.0, 1.0, 2.0), (math.inf, None, 0.0)])
def test_nan_to_num_is_part_of_a_chain(numbers):
    x = rl.tensor([math.nan, math.inf, -math.inf, 3.0])
    f = rl.compile(lambda x: (x * 2).nan_to_num(*numbers) * 0.5)
    f(x)
    c, y = counted(f, x)
    assert y.tolist() == ((x * 2).nan_to_num(*numbers) * 0.5).tolist() and c.launches == 1
