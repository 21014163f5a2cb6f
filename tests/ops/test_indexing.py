"""What the specs of cat and of the ops with an index leave out: views, every dtype, order of sums, bad arguments."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_every_dtype_is_moved_bit_by_bit(dtype, device):
    x = rl.tensor(np.arange(40) % 3, dtype=dtype, device=device).reshape(5, 8)
    array = np.array(x.tolist())
    index = rl.tensor([4, 0, 4], device=device)
    rows, columns = (x, 0, array[[4, 0, 4]]), (x.T.contiguous(), 1, array[[4, 0, 4]].T)
    for variant in ["", *(rung.name for rung in rl.variants("index_select", device))]:
        taken = 0  # some rungs take rows alone, and some columns
        for moved, dim, right in (rows, columns):
            try:
                found = moved.index_select(dim, index, variant=variant)
            except ValueError as error:
                assert variant and "does not accept these operands" in str(error)
                continue
            np.testing.assert_array_equal(found.tolist(), right)
            taken += 1
        assert taken >= (1 if variant else 2), variant
    np.testing.assert_array_equal(np.array(rl.cat([x, x[:1]]).tolist()), np.concatenate([array, array[:1]]))
    assert rl.embedding(index, x).dtype == dtype


def test_cat_writes_once_and_needs_no_copy_of_views(device):
    x = rl.randn(6, 8, device=device)
    with rl.count() as c:
        y = rl.cat([x.T, x.T[:, :2]], dim=1)
    assert (c.ops, c.launches, c.allocations) == (1, 2, 1)
    assert c.bytes_read == x.nbytes  # the second is part of the first
    a = x.cpu().numpy().T
    np.testing.assert_array_equal(y.cpu().numpy(), np.concatenate([a, a[:, :2]], 1))


def test_one_tensor_twice_gets_both_gradients(device):
    x = rl.ones(2, 3, device=device, requires_grad=True)
    (rl.cat([x, x, x * 2]) * rl.arange(6, dtype="float32", device=device).reshape(6, 1)).sum().backward()
    assert x.grad.tolist() == [[0 + 2 + 8] * 3, [1 + 3 + 10] * 3]


def test_rows_asked_for_twice_get_both_gradients(device):
    weight = rl.randn(4, 3, device=device, requires_grad=True)
    y = rl.embedding(rl.tensor([[1, 3], [1, 1]], device=device), weight)
    y.backward(rl.ones(2, 2, 3, device=device))
    assert weight.grad.tolist() == [[0] * 3, [3] * 3, [0] * 3, [1] * 3]


def test_sixteen_bit_sums_are_kept_in_float32(device):
    """In bfloat16 256 + 1 is 256, so sums kept in it would stop there."""
    index = rl.zeros(1000, dtype="int64", device=device)
    for dtype in ("bfloat16", "float16"):
        y = rl.scatter_add(rl.zeros(2, dtype=dtype, device=device), 0, index, rl.ones(1000, dtype=dtype, device=device))
        assert y.tolist() == [1000, 0]
        weight = rl.zeros(2, 1, dtype=dtype, device=device, requires_grad=True)
        rl.embedding(index, weight).backward(rl.ones(1000, 1, dtype=dtype, device=device))
        assert weight.grad.tolist() == [[1000], [0]]


@pytest.mark.parametrize("shape", [(700,), (9, 700), (700, 130)])
def test_sums_are_the_same_bits_for_any_number_of_threads(shape):
    rng = np.random.default_rng(0)
    src = rl.tensor(rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape), dtype="float32")
    index = rl.tensor(rng.integers(0, 5, shape))
    x, before = rl.zeros(*[5 if d == 0 else n for d, n in enumerate(shape)]), rl.num_threads()
    found = {rl.scatter_add(x, 0, index, src, variant="v0_reference").numpy().tobytes()}
    try:
        for threads in (1, 2, 5):
            rl.set_num_threads(threads)
            found.add(rl.scatter_add(x, 0, index, src).numpy().tobytes())
    finally:
        rl.set_num_threads(before)
    assert len(found) == 1


def test_integers_wrap_around(device):
    x = rl.tensor([2**63 - 1], device=device)
    y = rl.scatter_add(x, 0, rl.tensor([0], device=device), rl.tensor([1], device=device))
    assert y.tolist() == [-(2**63)]


def test_views_of_tables_and_indices(device):
    rng = np.random.default_rng(0)
    table, index = rng.standard_normal((12, 10)), rng.integers(0, 10, (6, 8))
    x, i = rl.tensor(table, device=device), rl.tensor(index, device=device)
    assert_close(rl.embedding(i.T, x[:, ::3]), table[index.T][..., ::3], rtol=0, atol=0)
    assert_close(rl.embedding(i[::2, 1::3], x.T), table.T[index[::2, 1::3]], rtol=0, atol=0)
    five = rng.standard_normal((4, 6, 4, 6, 9))
    parts = rl.tensor(five, device=device)[::2, :, ::2, ::2]
    assert_close(rl.index_select(parts, 1, i[0] % 6), five[::2, :, ::2, ::2][:, index[0] % 6], rtol=0, atol=0)
    assert_close(parts[:, i[0] % 6 - 6], five[::2, :, ::2, ::2][:, index[0] % 6], rtol=0, atol=0)
    row = rl.tensor(table[:1], device=device).expand(10, 10)
    assert_close(rl.index_select(row, 1, i[0]), np.repeat(table[:1], 10, 0)[:, index[0]], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_four_dimensions_that_do_not_merge(dtype, device):
    """Each array lies in memory in an order of its own."""
    rng = np.random.default_rng(0)

    def turned(array, *order):  # the tensor of an array, in memory in the given order of dimensions
        moved = rl.tensor(array.transpose(order), dtype=None if array.dtype == "int64" else dtype, device=device)
        return moved.contiguous().permute(*np.argsort(order).tolist())

    x, src = (rng.integers(0, 2, shape).astype(dtype) for shape in ((4, 5, 6, 7), (3, 5, 4, 6)))
    index = rng.permuted(np.broadcast_to(np.arange(5)[:, None, None], (3, 5, 4, 6)), axis=1)  # each place once
    places = list(np.indices(index.shape))
    places[1] = index
    operands = turned(x, 2, 0, 3, 1), 1, turned(index, 3, 1, 0, 2), turned(src, 1, 3, 2, 0)
    written, added = x.copy(), x.copy()
    written[tuple(places)] = src
    np.testing.assert_array_equal(rl.scatter(*operands).cpu().numpy(), written)
    np.testing.assert_array_equal(rl.gather(*operands[:3]).cpu().numpy(), x[tuple(places)])
    if dtype != "bool":
        added[tuple(places)] += src
        np.testing.assert_array_equal(rl.scatter_add(*operands).cpu().numpy(), added)
    values = rng.integers(0, 2, (4, 3, 6, 7)).astype(dtype)
    operands[0][:, rl.tensor([4, 0, 3], device=device)] = turned(values, 1, 3, 2, 0)
    x[:, [4, 0, 3]] = values
    np.testing.assert_array_equal(operands[0].cpu().numpy(), x)


@pytest.mark.parametrize("bad", [-1, 5, 2**40, -(2**63)])
def test_an_index_out_of_range_is_refused(bad):
    x, index = rl.ones(5, 3), rl.tensor([0, bad, 1])
    for variant in ("", "v0_reference"):
        with pytest.raises(ValueError, match=rf"\[index_select\] index: expected in \[0, 5\), got {bad}"):
            rl.index_select(x, 0, index, variant=variant)
    with pytest.raises(ValueError, match=r"\[embedding\] index"):
        rl.embedding(index, x)
    with pytest.raises(ValueError, match=r"\[gather\] index"):
        rl.gather(x, 0, index.reshape(3, 1))
    with pytest.raises(ValueError, match=r"\[scatter_add\] index"):
        rl.scatter_add(x, 0, index.reshape(3, 1), rl.ones(3, 1))


@pytest.mark.parametrize("call", ["gather", "scatter_add", "cross_entropy"])
def test_the_first_of_many_bad_indices_is_named(call):
    """Several threads look, each at its own part."""
    n = 300_000
    index = np.zeros(n, dtype=np.int64)
    index[[77_777, 200_000, n - 1]] = 1077, 2200, 3300
    index, x = rl.tensor(index), rl.ones(5)
    logits = rl.ones(1, 5).expand(n, 5)
    calls = {
        "gather": (lambda: rl.gather(x, 0, index), r"\[gather\] index: expected in \[0, 5\), got 1077"),
        "scatter_add": (lambda: x.scatter_add(0, index, rl.ones(n)), r"\[scatter_add\] index: .*, got 1077"),
        "cross_entropy": (
            lambda: rl.cross_entropy(logits, index),
            r"\[cross_entropy\] target: .* 1077 in row 77777",
        ),
    }
    refused, message = calls[call]
    for _ in range(20):
        with pytest.raises(ValueError, match=message):
            refused()


@pytest.mark.gpu
def test_a_gpu_marks_what_an_index_out_of_range_chose():
    index, ones = rl.tensor([1, 7, -1], device="cuda"), rl.ones(3, 4000, device="cuda")

    def late(op, result):
        message = rf"\[{op}\] index: expected in \[0, 5\), got (7|-1) \(a kernel on cuda:0 found this"
        with pytest.raises(ValueError, match=message):
            rl.cuda.synchronize()
        return result.cpu().numpy()

    for width in (3, 64):
        y = late("embedding", rl.embedding(index, rl.ones(5, width, device="cuda")))
        assert np.isnan(y[1:]).all() and (y[0] == 1).all()
    y = late("index_select", rl.index_select(rl.arange(5, device="cuda"), 0, index))
    assert y.tolist() == [1, -1, -1]
    for width in (1, 4000):  # sums in shared memory, and not
        y = late("scatter_add", rl.zeros(5, width, device="cuda").index_add(0, index, ones[:, :width]))
        assert y[:, -1].tolist() == [0, 1, 0, 0, 0]


WAITS = {
    "device": lambda y, stream, start, end: rl.cuda.synchronize(),
    "stream": lambda y, stream, start, end: stream.synchronize(),
    "event": lambda y, stream, start, end: end.synchronize(),
    "elapsed": lambda y, stream, start, end: start.elapsed_time(end),
    "item": lambda y, stream, start, end: y.item(),
    "copy there": lambda y, stream, start, end: rl.ones(1).to("cuda"),
    "print": lambda y, stream, start, end: repr(y),
}


@pytest.mark.gpu
@pytest.mark.parametrize("wait", WAITS)
def test_every_wait_raises_what_a_kernel_found_once(wait):
    x, index = rl.ones(5, device="cuda"), rl.tensor([9], device="cuda")
    start, end, stream = rl.cuda.Event(), rl.cuda.Event(), rl.cuda.Stream()
    with stream:
        start.record()
        y = rl.index_select(x, 0, index)
        rl.index_select(x, 0, index + 1)
        end.record()
        with pytest.raises(ValueError, match=r"\[index_select\] index: expected in \[0, 5\), got 9 \("):
            WAITS[wait](y, stream, start, end)
        rl.cuda.synchronize()
        assert np.isnan(y.item())


X = rl.ones(4, 3)
INDEX = rl.tensor([0, 1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rl.cat([]), r"\[cat\] tensors: expected at least one"),
        (lambda: rl.cat([X, rl.ones(4, 2)]), r"\[cat\] tensors: expected \(4, 3\) but for dimension 0, got \(4, 2\)"),
        (lambda: rl.cat([X, rl.ones(3)]), r"\[cat\] tensors"),
        (lambda: rl.cat([X, X.to("meta")]), r"\[cat\] operands are on cpu and meta"),
        (lambda: rl.cat([X], dim=2), r"\[cat\] dim: expected in \[-2, 1\], got 2"),
        (lambda: rl.gather(X, 0, INDEX), r"\[gather\] index: expected at most \(4, 3\)"),
        (lambda: rl.gather(X, 1, rl.zeros(5, 1, dtype="int64")), r"\[gather\] index: expected at most \(4, 3\)"),
        (lambda: rl.gather(X, 0, X), r"\[gather\] index: expected int64 or int32, got float32"),
        (lambda: rl.index_select(X, 0, INDEX.reshape(1, 2)), r"\[index_select\] index: expected 1 dimension"),
        (lambda: rl.index_select(rl.ones(0, 3), 0, INDEX), r"\[index_select\] x: expected something to choose from"),
        (lambda: rl.embedding(INDEX, rl.ones(3)), r"\[embedding\] weight: expected \(V, D\), got \(3,\)"),
        (lambda: rl.embedding(INDEX, X.to("meta")), r"\[embedding\].*meta:cpu and cpu"),
        (lambda: rl.scatter_add(X, 0, INDEX, X), r"\[scatter_add\] index: expected the shape of src"),
        (lambda: rl.scatter_add(X[:, :2], 0, rl.zeros(4, 3, dtype="int64"), X), r"\[scatter_add\] src: expected at m"),
        (lambda: rl.scatter_add(X > 0, 0, INDEX, X > 0), r"\[scatter_add\] x: expected a numeric dtype, got bool"),
        (lambda: rl.scatter_add(X, 0, INDEX, X.double()), r"\[scatter_add\].*float32 and float64"),
    ],
)
def test_bad_arguments_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
