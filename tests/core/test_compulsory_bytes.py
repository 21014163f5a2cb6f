"""Compulsory bytes: each byte of the operands' memory once, however many views and storages it belongs to."""

import time

import numpy as np
import pytest

import rooflab as rl

STEPS = ((1, 5, 1), (0, 7, 2), (0, 13, 4))  # each carries into the digits of the next


def addresses(x):
    """The first byte of each element."""
    at = np.zeros((), np.int64)
    for size, stride in zip(x.shape, x.strides, strict=True):
        at = np.add.outer(at, np.arange(size) * stride)
    return x.data_ptr() + x.dtype.itemsize * at.ravel()


def counted(op, operands):
    with rl.count() as c:
        getattr(rl, op)(*operands)
    return c.by_op[op].bytes_read


def views():
    line, x, cube = rl.ones(101), rl.ones(9, 7), rl.ones(6, 5, 4)
    yield "sub", (x[:, 1:], x[:, :-1])
    yield "add", (line[:100:2], line[:50])
    yield "add", (line[1:101:2], line[3:53])
    yield "add", (line[::4], line[:26])
    yield "mul", (x[:, ::2], x[:, 1:5])
    yield "mul", (x[1:, 1:], x[:-1, :-1])
    yield "mul", (x[:, :1], x[:1])
    yield "mul", (x[:, 2:3].expand(9, 4), x[:, :4])
    yield "matmul", (x[:, 1:4], x[2:5, :])
    yield "matmul", (x, x.T)
    yield "add", (cube[1:, :, :3], cube[:-1, :, 1:])
    yield "add", (cube.permute(2, 0, 1)[1:], cube.permute(2, 0, 1)[:-1])
    yield "where", (x[:, :6] > 0, x[:, :6], x[:, 1:])
    yield "cat", ([x[:, first : first + 3] for first in range(5)],)
    yield "cat", ([x[:, 0:6], x[:, 1:3], x[:, 2:7]], 1)
    yield "cat", ([line[first : first + 90 : 2] for first in range(8)],)


def shared():
    """One memory of NumPy, or of a tensor, under several storages."""
    array = np.ones((6, 6), np.float32)
    yield "add", (rl.from_numpy(array), rl.from_numpy(array))
    yield "add", (rl.from_numpy(array[:, 1:]), rl.from_numpy(array[:, :-1]))
    yield "matmul", (rl.from_numpy(array), rl.from_numpy(array[1:].T))
    x = rl.ones(4, 4)
    yield "mul", (x, rl.from_dlpack(x))
    yield "where", (rl.from_numpy(array.view(np.int32)) > 0, rl.from_numpy(array), rl.from_numpy(array))


@pytest.mark.parametrize(("op", "operands"), [*views(), *shared()])
def test_each_byte_counts_once_and_costs_say_the_same(op, operands):
    tensors = operands[0] if isinstance(operands[0], list) else operands
    elements = {(at, x.dtype.itemsize) for x in tensors for at in addresses(x)}
    assert counted(op, operands) == sum(size for _, size in elements)
    if op != "cat":
        assert rl.cost.of(op, *operands).bytes_read == counted(op, operands)


def test_rows_of_numpy_that_overlap_count_once():
    array = np.ones(20, np.float32)
    windows = rl.from_numpy(np.lib.stride_tricks.sliding_window_view(array, 5, writeable=True))
    assert counted("add", (windows, 1.0)) == 20 * 4


@pytest.mark.parametrize(
    ("shape", "strides"), [((3, 5), (32, 32)), ((5, 5), (12, 12)), ((4, 6), (16, 8)), ((6, 3), (4, 16))]
)
def test_rows_of_numpy_that_overlap_with_gaps_count_once(shape, strides):
    rows = np.lib.stride_tricks.as_strided(np.ones(100, np.float32), shape, strides, writeable=True)
    x = rl.from_numpy(rows)
    assert counted("add", (x, 1.0)) == 4 * len(set(addresses(x)))


def test_many_windows_of_rows_count_once():
    x = rl.empty(2000, 40, device="meta")
    assert counted("cat", ([x[i : i + 8, :20] for i in range(390)],)) == 397 * 20 * 4
    assert counted("cat", ([x[i : i + 600, :20] for i in range(1200)],)) == 1799 * 20 * 4
    corners = [x[i : i + 4, i % 20 : i % 20 + 8] for i in range(380)]
    assert counted("cat", (corners,)) == 4 * len({e for corner in corners for e in addresses(corner)})


def test_bytes_that_take_long_are_left_out_where_nobody_counts():
    big = rl.empty(*[16] * 8, dtype="bool", device="meta")
    x, y, z = (big[tuple(slice(first, last, step) for _ in range(8))] for first, last, step in STEPS)

    def seconds():
        start = time.thread_time()
        rl.where(x, y, z)
        return time.thread_time() - start

    uncounted = min(seconds() for _ in range(5))
    with rl.count() as c:
        assert 10 * uncounted < min(seconds() for _ in range(5))
    assert c.bytes_read <= 5 * 3 * x.nbytes


def test_unlike_gaps_count_whole_but_no_more_than_their_memory():
    x = rl.ones(60)
    assert counted("add", (x[:40:2], x[:60:3])) == 2 * 20 * 4
    assert counted("cat", ([x[first : first + 8 : step] for step in (2, 3) for first in range(50)],)) <= 60 * 4


def test_many_dimensions_and_operands_take_no_time():
    x = rl.empty(*[12] * 8, device="meta")
    corners = [x[tuple(slice(i * d % 5, i * d % 5 + 7) for d in range(1, 9))] for i in range(12)]
    assert counted("cat", (corners,)) <= x.nbytes


def test_memory_of_other_dtypes_has_no_cost_by_name():
    array = np.ones(4, np.float32)
    operands = (rl.tensor([True]), rl.from_numpy(array), rl.from_numpy(array.view(np.int32)))
    with pytest.raises(ValueError, match="share memory: expected the same dtype"):
        rl.cost.of("where", *operands)
