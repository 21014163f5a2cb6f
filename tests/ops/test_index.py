"""t[...] with lists, masks and tensors of integers: read, written and differentiated as NumPy does."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

MASK = np.array([[True, False, True], [False, False, True], [True, True, False], [False, True, False]])
# Indices into an array of shape (4, 3, 5).
INDICES = {
    "list": [2, 0, -1],
    "repeated": [1, 1, 1],
    "empty": [],
    "matrix": [[0, 3], [1, 2]],
    "number_then_list": (1, [2, 0]),
    "slice_then_list": (slice(None, None, 2), [2, 0]),
    "list_then_slice": ([3, 1], slice(1, 3)),
    "backwards": (slice(None, None, -1), [0, 2]),
    "last": (..., [4, -5, 2]),
    "new_dimension": (None, [0, 1]),
    "pairs": ([0, 3, 1], [2, 0, 1]),
    "pairs_that_broadcast": ([[0], [3]], [2, 0, 1]),
    "triples": ([0, 3], [2, 0], [1, -1]),
    "apart": ([0, 3], slice(None), [1, 4]),
    "apart_with_number": ([[0], [2]], slice(1, 2), [1, 4]),
    "apart_after_new_dimension": (None, [0, 3], slice(None), [1, 4]),
    "mask_of_rows": np.array([True, False, True, True]),
    "mask_of_two": MASK,
    "mask_inside": (slice(None), np.array([True, False, True])),
    "mask_and_list": (MASK, [0, 1, 2, 3, 4, 0]),
    "mask_of_none": np.zeros(4, bool),
    "int32": np.array([3, 0], np.int32),
    "uint8": np.array([3, 0], np.uint8),
}


def as_tensors(index, device):
    items = index if isinstance(index, tuple) else (index,)
    made = tuple(rl.tensor(i, device=device) if isinstance(i, list) and i else i for i in items)
    made = tuple(rl.tensor(i, device=device) if isinstance(i, np.ndarray) and i.dtype != np.uint8 else i for i in made)
    return made if isinstance(index, tuple) else made[0]


@pytest.fixture(params=["as_it_is", "tensors"])
def to_index(request, device):
    return (lambda index: index) if request.param == "as_it_is" else (lambda index: as_tensors(index, device))


def numpy_index(index):
    return np.array([], int) if isinstance(index, list) and not index else index


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_reading_agrees_with_numpy(name, layout, to_index, device):
    array = np.arange(60.0).reshape(4, 3, 5)
    x = rl.tensor(array, device=device)
    if layout == "transposed":
        x = rl.tensor(np.ascontiguousarray(array.transpose(2, 0, 1)), device=device).permute(1, 2, 0)
    chosen = x[to_index(INDICES[name])]
    assert_close(chosen, array[numpy_index(INDICES[name])], rtol=0, atol=0)
    chosen.fill_(-1)
    assert_close(x, array, rtol=0, atol=0)


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("value", ["number", "same", "row"])
def test_writing_agrees_with_numpy(name, value, to_index, device):
    array = np.arange(60.0).reshape(5, 4, 3).transpose(1, 2, 0).copy()
    index = numpy_index(INDICES[name])
    x = rl.tensor(array, device=device)
    shape = array[index].shape
    new = {
        "number": -1.0,
        "same": np.random.default_rng(0).random(shape),
        "row": np.random.default_rng(0).random(shape[-1:]),
    }
    array[index] = new[value]
    x[to_index(INDICES[name])] = new[value] if value == "number" else rl.tensor(new[value], device=device)
    assert_close(x, array, rtol=0, atol=0)


@pytest.mark.parametrize("name", INDICES)
def test_gradients_go_back_to_what_was_chosen(name, to_index, device):
    index = numpy_index(INDICES[name])
    x = rl.zeros(4, 3, 5, dtype="float64", device=device, requires_grad=True)
    y = x[to_index(INDICES[name])]
    weights = np.random.default_rng(0).random(y.shape)
    (y * rl.tensor(weights, device=device)).sum().backward()
    expected = np.zeros((4, 3, 5))
    np.add.at(expected, index, weights)
    assert_close(x.grad, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "int32", "bool"])
def test_every_dtype_is_read_and_written(dtype, device):
    x = rl.tensor([0, 1, 2, 3], dtype=dtype, device=device)
    before = x.tolist()
    assert x[[3, 1]].tolist() == [before[3], before[1]]
    x[[0, 2]] = x[[1, 0]]
    x[rl.tensor([False, False, False, True], device=device)] = 1
    assert x.tolist() == [before[1], before[1], before[0], 1]


def test_views_are_written_through(device):
    x = rl.zeros(4, 6, device=device)
    x.T[1:5:2][:, [0, 3]] = 7.0
    x[1:3][x[1:3] == 0] += 1
    expected = np.zeros((4, 6))
    expected.T[1:5:2][:, [0, 3]] = 7
    expected[1:3][expected[1:3] == 0] += 1
    assert_close(x, expected, rtol=0, atol=0)


def test_of_several_values_for_a_place_the_last_is_kept(device):
    x = rl.zeros(3, device=device)
    x[[1, 1, 0, 1]] = [5.0, 6.0, 7.0, 8.0]
    assert x.tolist() == [7, 8, 0]


def test_writes_bump_the_version_and_refuse_leaves():
    x, w = rl.ones(3), rl.ones(3, requires_grad=True)
    y = (x * w).sum()
    x[[0]] = 5
    with pytest.raises(ValueError, match="changed in place"):
        y.backward()
    with pytest.raises(ValueError, match=r"\[index\] destination: requires grad"):
        w[[0]] = 5
    with pytest.raises(ValueError, match=r"\[index\] source: requires grad"):
        x[[0]] = w[:1]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([0, 4], r"\[index\] 4 is out of bounds for dimension 0 of size 4"),
        ([-5], r"\[index\] -5 is out of bounds"),
        ((0, [3]), r"\[index\] 3 is out of bounds for dimension 0 of size 3"),
        (np.ones(3, bool), r"\[index\] mask: expected \(4,\), got \(3,\)"),
        (np.ones((4, 4), bool), r"\[index\] mask: expected \(4, 3\), got \(4, 4\)"),
        (np.ones((4, 3, 5, 1), bool), r"\[index\] expected at most 3 for shape \(4, 3, 5\), got 4"),
        ([0.5], r"\[index\] expected integers, slices, .* got float64"),
        (rl.tensor(True), r"\[index\] expected no bool alone.* rl.where\(mask, a, b\) for a mask without dimensions"),
        (np.array(True), r"\[index\] expected no bool alone"),
        ((0, np.array(False)), r"\[index\] expected no bool alone"),
        (np.array(0.5), r"\[index\] expected integers, slices, .* got float64"),
        (True, r"\[index\] expected no bool alone, .* write x\[None\] for x\[True\]"),
        ((False, 0, 0, 0), r"\[index\] expected no bool alone"),
        (({}, 0), r"\[index\] expected integers, slices, .* got dict"),
    ],
)
def test_what_cannot_be_an_index_is_an_index_error(index, message):
    x = rl.zeros(4, 3, 5)
    with pytest.raises(IndexError, match=message):
        x[index]
    with pytest.raises(IndexError, match=message):
        x[index] = 0
    with pytest.raises(ValueError, match=r"\[index\] shapes \(2,\) and \(3,\) do not broadcast"):
        x[[0, 1], [0, 1, 2]]
    with pytest.raises(ValueError, match=r"\[index\] .*broadcast"):
        x[[0, 1]] = rl.zeros(3, 3, 5)


@pytest.mark.parametrize(
    ("shape", "index", "value"),
    [
        ((2,), [], (3,)),
        ((2,), rl.tensor([False, False]), (3,)),
        ((0, 3), (slice(None), [0]), (7,)),
        ((4, 3), ([], slice(1)), (2,)),
        ((4, 3), ([], slice(1)), (2, 0, 1)),
    ],
)
def test_a_value_must_fit_where_nothing_is_chosen(shape, index, value, device):
    x = rl.zeros(*shape, device=device)
    with pytest.raises(ValueError, match=r"^\[index\] .*broadcast"):
        x[index] = rl.ones(*value, device=device)
    x[index] = rl.ones(1, device=device)
    x[index] = 5
    assert not x.cpu().numpy().any()


def test_without_memory_it_counts_and_masks_are_refused():
    x = rl.zeros(4, 6, device="meta:H200")
    chosen = x[[0, 2, 1]]
    assert chosen.shape == (3, 6)
    x[rl.zeros(2, dtype="int64", device="meta:H200")] = 1
    with pytest.raises(ValueError, match=r"\[index\] mask: on meta:H200 it has no values"):
        x[rl.ones(4, dtype="bool", device="meta:H200")]


def test_places_that_depend_on_values_need_them():
    with pytest.raises(ValueError, match=r"\[nonzero\] x: on meta:H200 it has no values"):
        rl.nonzero(rl.ones(4, device="meta:H200"))
    with rl.Graph(device="cpu").capture(), pytest.raises(ValueError, match=r"\[nonzero\] .* a graph cannot capture it"):
        rl.nonzero(rl.ones(4))


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("choose", [lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[2, i.reshape(1, 3)]])
def test_integers_are_one_index_select(choose, dtype, device):
    """The kernel counts numbers below 0 from the end, and reads the index as it is."""
    x, index = rl.ones(10, 6, device=device), rl.tensor([1, -5, 5], dtype=dtype, device=device)
    with rl.count() as c:
        y = choose(x, index)
    assert (set(c.by_op), c.ops, c.launches, c.allocations) == ({"index_select"}, 1, 1, 1)
    assert (c.bytes_read, c.bytes_written) == (y.nbytes + index.nbytes, y.nbytes)
    with rl.count() as meta:
        choose(x.to("meta"), index.to("meta"))
    assert (meta.ops, meta.launches, meta.bytes_read) == (1, 1, c.bytes_read)


def test_its_gradient_is_one_scatter_add(device):
    x = rl.ones(10, 4, device=device, requires_grad=True)
    y, dy = x[rl.tensor([-1, 3, 9], device=device)], rl.ones(3, 4, device=device)
    with rl.count() as c:
        y.backward(dy)
    assert set(c.by_op) == {"scatter_add"}
    assert x.grad.tolist() == [[0] * 4] * 3 + [[1] * 4] + [[0] * 4] * 5 + [[2] * 4]


def test_a_write_counts_numbers_from_the_end_without_a_launch():
    """All that is launched computes the tensor anew: winners of the values, where, copy."""
    x = rl.zeros(4, 3)
    with rl.count() as c:
        x[rl.tensor([-1, 0])] = rl.ones(2, 3)
    assert not {"lt", "add"} & set(c.by_op) and x.tolist() == [[1] * 3, [0] * 3, [0] * 3, [1] * 3]


def test_a_graph_reads_the_numbers_when_it_replays(device, refused):
    x = rl.arange(12, device=device).reshape(4, 3)
    index, graph = rl.tensor([0, -1], device=device), rl.Graph(device=device)
    x[index]  # warms up
    with graph.capture():
        y = x[index]
    index.copy_(rl.tensor([-4, 2]))
    graph.replay()
    assert y.tolist() == [[0, 1, 2], [6, 7, 8]]
    index.copy_(rl.tensor([1, -5]))
    with refused(IndexError, r"\[index\] -5 is out of bounds for dimension 0 of size 4"):
        graph.replay()
    assert device == "cpu" or y.tolist() == [[3, 4, 5], [-1] * 3]


def test_a_graph_looks_at_several_arrays_when_it_replays(device, refused):
    x = rl.arange(12, device=device).reshape(4, 3)
    i, k = rl.tensor([0, -1], device=device), rl.tensor([-3, 2], device=device)
    x[i, k]  # warms up
    graph = rl.Graph(device=device)
    with graph.capture():
        y = x[i, k]
    k.copy_(rl.tensor([1, 1]))
    graph.replay()
    assert y.tolist() == [1, 10]
    k.copy_(rl.tensor([1, 3]))
    with refused(IndexError, r"\[index\] 3 is out of bounds for dimension 1 of size 3"):
        graph.replay()


def test_a_compiled_function_looks_at_its_arrays_in_each_call(device, refused):
    """Also where a number out of range in one array is, with the other, another place of x."""
    x, i = rl.arange(24, device=device).reshape(4, 6), rl.tensor([0, 1], device=device)
    compiled = rl.compile(lambda x, i, k: x[i, k] * 2)
    assert compiled(x, i, rl.tensor([5, -1], device=device)).tolist() == [10, 22]
    for bad in (6, -7):
        with refused(IndexError, rf"\[index\] {bad} is out of bounds for dimension 1 of size 6"):
            compiled(x, i, rl.tensor([bad, 0], device=device))


def test_the_same_by_a_compiled_function_and_under_autocast(device):
    x, index = rl.randn(5, 7, device=device), rl.tensor([-1, 0, -5], device=device)
    found = rl.compile(lambda x, i: x[i] * 2)(x, index)
    with rl.autocast(device):
        assert (
            (x[index] * 2).tolist()
            == found.tolist()
            == (x.index_select(0, rl.tensor([4, 0, 0], device=device)) * 2).tolist()
        )


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("bad", [-5, 4, 2**31 - 1, -(2**31)])
def test_the_kernel_names_a_number_out_of_range(bad, dtype, device, refused):
    one, other = rl.tensor([0, bad, 3], dtype=dtype, device=device), rl.tensor([1, 0, -1], device=device)
    for dim, shape in enumerate(((4,), (2, 4), (2, 3, 4))):
        x, before = rl.ones(shape, device=device), (slice(None),) * dim
        with refused(IndexError, rf"\[index\] {bad} is out of bounds for dimension {dim} of size 4"):
            x[(*before, one)]
        with refused(IndexError, rf"\[index\] {bad} is out of bounds for dimension {dim} of size 4"):
            x[(*before[1:], other, one) if dim else (one,)]


@pytest.mark.gpu
def test_numbers_on_the_cpu_are_read_before_they_are_moved():
    x = rl.ones(4, 3, device="cuda")
    for index in (rl.tensor([4]), ([0], rl.tensor([3]))):
        with pytest.raises(IndexError, match=r"\d is out of bounds for dimension \d of size \d$"):
            x[index]


def test_a_number_out_of_range_is_refused_where_nothing_is_there():
    with pytest.raises(IndexError, match=r"\[index\] 7 is out of bounds for dimension 0 of size 3"):
        rl.ones(3, 0)[rl.tensor([7], dtype="int32")]
    with pytest.raises(IndexError, match=r"\[index\] 0 is out of bounds for dimension 0 of size 0"):
        rl.ones(0, 3)[[0]]
    for device in ("meta", "meta:H200"):
        number, x = rl.tensor([0], device=device), rl.ones(0, 3, device=device)
        for use in (lambda i, x: x[i], lambda i, x: x.__setitem__(i, 1), lambda i, x: x.T.__setitem__((0, i), 1)):
            with pytest.raises(IndexError, match=r"\[index\] every number is out of bounds for dimension \d of size 0"):
                use(number, x)
            use(number[:0], x)
    index, x = rl.tensor([1, 9, 0]), rl.ones(2, 0)
    for choose in (lambda i: rl.embedding(i, x), lambda i: x.index_select(0, i)):
        with pytest.raises(ValueError, match=r"index: expected in .* got 9"):
            choose(index)
        with rl.count() as c:
            assert choose(index[::2]).shape == (2, 0)
        assert (c.ops, c.launches, c.bytes_written) == (1, 1, 0), "one looks"
    with pytest.raises(ValueError, match="x: expected something to choose from, got"):
        rl.embedding(index, rl.ones(0, 0))


@pytest.mark.gpu
@pytest.mark.parametrize("width", [(), (3,), (33,), (64,), (5000,)])
def test_a_gpu_marks_what_a_number_out_of_range_chose(width):
    index = rl.tensor([1, 5, -5, -6, 2**40, -(2**63)], device="cuda")
    for dtype, marked in (("bfloat16", float("nan")), ("float64", float("nan")), ("int32", -1), ("bool", True)):
        x = rl.zeros(5, *width, dtype=dtype, device="cuda")
        y = x[index]
        with pytest.raises(IndexError, match=r"\d is out of bounds for dimension 0 of size 5 \(a kernel on cuda:0"):
            y.cpu()
        y = y.cpu().double().numpy().reshape(6, -1)
        np.testing.assert_array_equal(y, np.broadcast_to([[0], [marked], [0], [marked], [marked], [marked]], y.shape))
    x = rl.zeros(5, *width, device="cuda", requires_grad=True)
    x[index].backward(rl.ones(6, *width, device="cuda"))
    with pytest.raises(IndexError, match="is out of bounds"):
        rl.cuda.synchronize()
    assert x.grad.reshape(5, -1)[:, 0].tolist() == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("index", [[1, 4], [-5], ([0, 1], [0, 3]), ([3, -5], [0, 0])])
def test_a_list_out_of_range_is_refused_on_every_device(index):
    x = rl.zeros(4, 3, device="meta:H200")
    with pytest.raises(IndexError, match=r"\[index\] -?\d is out of bounds for dimension \d of size \d"):
        x[index]
    with pytest.raises(IndexError, match="is out of bounds"):
        x[index] = 0


def test_masks_of_a_list_are_known_on_every_device():
    assert rl.zeros(4, 3, device="meta:H200")[[True, False, True, True]].shape == (3, 3)


@pytest.mark.parametrize("index", [[1, 4], [-5], ([0, 1], [0, 3]), ([3, -5], [0, 0])])
def test_a_write_out_of_range_is_refused_before_it_is_made(index, device, refused):
    x = rl.zeros(4, 3, device=device)
    tensors = tuple(rl.tensor(i, device=device) for i in (index if isinstance(index, tuple) else (index,)))
    with refused(IndexError, "is out of bounds"):
        x[tensors] = 1
    assert x.sum().item() == 0


def test_a_number_has_no_dimension_to_index():
    x = rl.tensor(3)
    for index in (0, -1, slice(None), [0]):
        with pytest.raises(IndexError, match=r"\[index\] expected at most 0 for shape \(\), got 1"):
            x[index]
        with pytest.raises(IndexError, match=r"\[index\] expected at most 0"):
            x[index] = 1
    assert x[()].item() == x[...].item() == 3


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64"])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("shape", [(1,), (7,), (1000,), (33, 5), (4, 3, 8)])
def test_a_mask_takes_what_numpy_takes(shape, share, dtype, device):
    rng = np.random.default_rng(0)
    values, mask = rng.integers(0, 100, shape).astype(dtype), rng.random(shape) < share
    x, chosen = rl.tensor(values, device=device), rl.tensor(mask, device=device)
    np.testing.assert_array_equal(x[chosen].cpu().numpy(), values[mask])
    np.testing.assert_array_equal(rl.nonzero(x * chosen).cpu().numpy(), np.argwhere(values * mask))
    across = x.transpose(0, -1)[chosen.transpose(0, -1)]
    np.testing.assert_array_equal(across.cpu().numpy(), values.swapaxes(0, -1)[mask.swapaxes(0, -1)])
    np.testing.assert_array_equal(x[::2][chosen[::2]].cpu().numpy(), values[::2][mask[::2]])
    last = mask.reshape(-1, shape[-1])[0]
    np.testing.assert_array_equal(x[..., rl.tensor(last, device=device)].cpu().numpy(), values[..., last])
