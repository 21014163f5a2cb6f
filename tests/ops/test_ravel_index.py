"""ravel_index, which x[i, j] runs before it chooses: values, cost, and what is out of range."""

import numpy as np
import pytest

import rooflab as rl

SHAPE = (5, 7, 3)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("shapes", [((4,), (4,)), ((4, 1), (6,)), ((2, 1, 3), (5, 1)), ((70_000,), (70_000,))])
def test_arrays_are_broadcast_and_count_from_the_end(shapes, dtype, device):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(SHAPE).astype("float32")
    i, j = (rng.integers(-n, n, shape) for n, shape in zip(SHAPE, shapes, strict=False))
    ours = rl.tensor(x, device=device)
    at_i, at_j = (rl.tensor(index, dtype=dtype, device=device) for index in (i, j))
    np.testing.assert_array_equal(ours[at_i, at_j].cpu().numpy(), x[i, j])
    np.testing.assert_array_equal(ours[at_i, :, at_j % 3].cpu().numpy(), x[i, :, j % 3])
    np.testing.assert_array_equal(ours[:, at_j, at_i % 3].cpu().numpy(), x[:, j, i % 3])


def test_strided_arrays_and_three_of_them(device):
    rng = np.random.default_rng(0)
    x, i = rng.standard_normal(SHAPE), rng.integers(-3, 3, (4, 6))
    ours, at = rl.tensor(x, device=device), rl.tensor(i, device=device)
    assert ours[at.T, at.T, at.T].tolist() == x[i.T, i.T, i.T].tolist()
    assert ours[at[:, ::2], at[:1, 1::2], at[0, 0]].tolist() == x[i[:, ::2], i[:1, 1::2], i[0, 0]].tolist()


def test_cost(device):
    x, index = rl.ones(SHAPE, device=device), rl.zeros(10, dtype="int64", device=device)
    with rl.count() as c:
        x[index, index.to("int32")]
    assert {op: counts.launches for op, counts in c.by_op.items()} == {"cast": 1, "ravel_index": 1, "index_select": 1}
    of = c.by_op["ravel_index"]
    assert (of.flops, of.bytes_read, of.bytes_written) == (0, 80 + 40, 80)


@pytest.mark.parametrize("bad", [(5, 0), (0, 7), (-6, 9), (-1, -8)])
def test_the_first_array_with_a_number_outside_is_named(bad, device, refused):
    x = rl.ones(SHAPE, device=device)
    i, j = (rl.tensor([0, number, 1], device=device) for number in bad)
    dim = 0 if not -5 <= bad[0] < 5 else 1
    with refused(IndexError, rf"\[index\] {bad[dim]} is out of bounds for dimension {dim} of size {SHAPE[dim]}"):
        x[i, j]
    with refused(IndexError, rf"\[index\] {bad[dim]} is out of bounds for dimension {dim} of size {SHAPE[dim]}"):
        x[i, j] = 0
    assert x.sum().item() == 105  # nothing was written
