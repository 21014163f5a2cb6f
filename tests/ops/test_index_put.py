"""x[index] = values writes what is chosen, and nothing else is touched."""

import numpy as np
import pytest

import rooflab as rl

# The shape of x, that of the index, and the dimension it counts. Rows of 16 and of fewer bytes; one column; one row;
# rows that several groups of threads share; an index too long for a GPU's shared memory.
CASES = [((50, 8), (20,), 0), ((50, 7), (300,), 0), ((40,), (1000,), 0), ((3, 33, 16), (5, 4), 1), ((6, 1), (1,), 0)]
CASES += [((3, 20, 3000), (50,), 1), ((40,), (513,), 0), ((50, 33), (3000,), 0), ((2, 40, 100), (512,), 1)]


def drawn(shape, index_shape, dim, dtype, low):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
    index = rng.integers(low * shape[dim], shape[dim], index_shape)
    chosen = (*shape[:dim], *index_shape, *shape[dim + 1 :])
    return x, index, rng.integers(0, 2 if dtype == "bool" else 100, chosen).astype(dtype)


def written(x, index, values, dim):
    """What NumPy has after the numbers of the index were taken one after another."""
    x, rows = np.moveaxis(x.copy(), dim, 0), index.reshape(-1)
    values = np.moveaxis(values.reshape(*values.shape[:dim], len(rows), *values.shape[dim + index.ndim :]), dim, 0)
    for place, row in zip(rows, values, strict=True):
        x[place] = row
    return np.moveaxis(x, 0, dim)


@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "float64"])
@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize(("shape", "index_shape", "dim"), CASES)
def test_the_last_value_for_a_place_stays(shape, index_shape, dim, low, dtype, device):
    x, index, values = drawn(shape, index_shape, dim, dtype, low)
    y = rl.tensor(x, device=device)
    y[(slice(None),) * dim + (rl.tensor(index, device=device),)] = rl.tensor(values, device=device)
    np.testing.assert_array_equal(y.cpu().numpy(), written(x, index, values, dim))


@pytest.mark.parametrize("view", ["turned", "every other", "part"])
def test_a_view_is_written_where_it_lies(view, device):
    x = np.arange(240.0).reshape(12, 20)
    see = {"turned": lambda a: a.T, "every other": lambda a: a[:, ::2], "part": lambda a: a[2:9, 3:]}[view]
    y, index = rl.tensor(x, device=device), np.array([3, 0, -1, 3])
    values = np.arange(4 * see(x).shape[1]).reshape(4, -1).astype(float)
    see(x)[index] = values
    see(y)[rl.tensor(index, device=device)] = rl.tensor(values, device=device)
    np.testing.assert_array_equal(y.cpu().numpy(), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_a_number_is_written_where_a_mask_holds_in_one_launch(dtype, device):
    x = np.random.default_rng(0).integers(0, 2, (12, 20)).astype(dtype)
    y = rl.tensor(x, device=device)
    cases = [
        (lambda a: a, np.arange(240).reshape(12, 20) % 3 == 0),
        (lambda a: a, np.arange(12) % 5 == 1),  # whole rows
        (lambda a: a.T, np.arange(240).reshape(20, 12) % 7 == 0),
        (lambda a: a[2:9, 3:], np.arange(119).reshape(7, 17) % 4 == 3),
    ]
    for number, (see, mask) in enumerate(cases):
        see(x)[mask] = number % 2
        chosen = rl.tensor(mask, device=device)
        with rl.count() as c:
            see(y)[chosen] = number % 2
        assert (c.launches, list(c.by_op)) == (1, ["where"])
        np.testing.assert_array_equal(y.cpu().numpy(), x)


def test_a_mask_of_the_same_memory_is_read_before_it_is_written(device):
    x = np.arange(5000) % 7 > 0
    y = rl.tensor(x, device=device)
    x[1:][x[:-1].copy()] = False
    y[1:][y[:-1]] = False
    assert y.tolist() == x.tolist()


def test_arrays_of_several_dimensions_choose_elements(device):
    x, rng = np.zeros((5, 4, 6)), np.random.default_rng(0)
    y, i, k = rl.tensor(x, device=device), rng.integers(-5, 5, 9), rng.integers(-6, 6, 9)
    x[i, :, k] = np.arange(36.0).reshape(9, 4)
    y[rl.tensor(i, device=device), :, rl.tensor(k, device=device)] = rl.arange(36.0, device=device).reshape(9, 4)
    np.testing.assert_array_equal(y.cpu().numpy(), x)


def test_values_of_the_same_memory_are_read_before_it_is_written(device):
    x = np.arange(24.0).reshape(8, 3)
    y, index = rl.tensor(x, device=device), np.array([1, 2, 3])
    x[index] = x[:3].copy()
    y[rl.tensor(index, device=device)] = y[:3]
    np.testing.assert_array_equal(y.cpu().numpy(), x)


def test_a_tensor_that_is_its_own_index_is_read_before_it_is_written(device):
    for dtype in ("int64", "int32"):
        x = np.random.default_rng(0).permutation(1000).astype(dtype)
        y = rl.tensor(x, device=device)
        x[x.copy()] = np.arange(1000)
        y[y] = rl.arange(1000, device=device)
        np.testing.assert_array_equal(y.cpu().numpy(), x)


def test_a_compiled_function_runs_a_write_as_it_is_written(device):
    def written(x, index, values):
        y = x * 2
        y[index] = values
        return y + 1

    rng, compiled = np.random.default_rng(0), rl.compile(written)
    x, values = (rl.tensor(rng.random((rows, 3)), device=device) for rows in (6, 4))
    index = rl.tensor(rng.integers(-6, 6, 4), device=device)
    with pytest.warns(UserWarning, match="a write by an array cannot be recorded"):
        first = compiled(x, index, values)
    for result in (first, compiled(x, index, values)):
        np.testing.assert_array_equal(result.cpu().numpy(), written(x, index, values).cpu().numpy())


def test_a_graph_writes_what_the_index_says_when_it_replays(device, refused):
    x, index, values = rl.zeros(4, 2, device=device), rl.tensor([0, -1], device=device), rl.ones(2, 2, device=device)
    x[index] = values  # warms up
    graph = rl.Graph(device=device)
    with graph.capture():
        x[index] = values
    index.copy_(rl.tensor([1, 1]))
    values.copy_(rl.tensor([[2.0, 3.0], [4.0, 5.0]]))
    graph.replay()
    assert x.tolist() == [[1, 1], [4, 5], [0, 0], [1, 1]]
    index.copy_(rl.tensor([2, 4]))
    with refused(IndexError, r"\[index\] 4 is out of bounds for dimension 0 of size 4"):
        graph.replay()
    assert x.tolist() == [[1, 1], [4, 5], [0, 0], [1, 1]]


def test_a_graph_writes_by_several_arrays(device, refused):
    x, i, k = rl.zeros(4, 3, device=device), rl.tensor([0, -1], device=device), rl.tensor([2, -3], device=device)
    x[i, k] = 0  # warms up
    graph = rl.Graph(device=device)
    with graph.capture():
        x[i, k] = 5
    i.copy_(rl.tensor([1, 1]))
    graph.replay()
    assert x.tolist() == [[0, 0, 0], [5, 0, 5], [0, 0, 0], [0, 0, 0]]
    i.copy_(rl.tensor([-5, 2]))
    k.copy_(rl.tensor([0, 1]))
    with refused(IndexError, r"\[index\] -5 is out of bounds for dimension 0 of size 4"):
        graph.replay()
    assert x.sum().item() == 10


def test_only_what_is_chosen_is_counted_and_written(device):
    x, index = rl.zeros(100_000, 16, device=device), rl.tensor([7, 99_999, 7], device=device)
    values = rl.ones(3, 16, device=device)
    with rl.count() as c:
        x[index] = values
    put = c.by_op["index_put"]
    assert set(c.by_op) == {"index_put"} and put.launches == 1
    assert (put.bytes_read, put.bytes_written) == (3 * 8 + 3 * 16 * 4, 3 * 16 * 4)
    assert c.bytes_allocated <= 4 * 100_000 + 1024


@pytest.mark.parametrize(("numbers", "launches"), [(512, 1), (513, 3)])
def test_a_long_index_takes_more_launches_on_a_gpu(numbers, launches):
    for device in ["meta:H200"] + ["cuda"] * rl.cuda.is_available():
        x, index = rl.zeros(9, 2, device=device), rl.zeros(numbers, dtype="int64", device=device)
        values = rl.ones(numbers, 2, device=device)
        with rl.count() as c:
            x[index] = values
        assert c.launches == launches and list(c.by_op) == ["index_put"]


def test_a_number_is_written_to_every_chosen_place(device):
    x, index = rl.zeros(6, 2, dtype="int32", device=device), rl.tensor([[0], [-1]], dtype="int32", device=device)
    x[index] = 7
    assert x.tolist() == [[7, 7], *[[0, 0]] * 4, [7, 7]]


@pytest.mark.parametrize("number", [4, -5, 2**40])
def test_one_number_out_of_range_among_many_leaves_all_as_it_was(number, device, refused):
    x, index = rl.zeros(4, 3, device=device), np.arange(1000) % 4
    index[700] = number
    with refused(IndexError, rf"\[index\] {number} is out of bounds for dimension 0 of size 4"):
        x[rl.tensor(index, device=device)] = rl.ones(1000, 3, device=device)
    assert x.sum().item() == 0
