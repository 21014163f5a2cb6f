"""Evenly spaced numbers: NumPy's, in one launch, on every device."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import to_float64


@pytest.mark.parametrize(
    "arguments",
    [
        (0,), (7,), (3, 100_003), (40, 8, -2), (-(2**62), 2**62, 2**58 + 1), (0.0, 1.6, 0.1), (0.0, -4.0, -0.25),
        (5, 5.9, 1 / 170_000), (1e300, 2e300, 1e299),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_the_numbers_are_those_of_numpy(arguments, dtype, device):
    numbers = np.arange(*arguments)
    if not dtype.startswith(("float", "bfloat")) and (numbers.dtype != np.int64 or dtype == "int32"):
        arguments = (0, 7, 2)  # these hold no fractions, and int32 no large numbers
        numbers = np.arange(*arguments)
    with rl.count() as c:
        made = rl.arange(*arguments, dtype=dtype, device=device)
    right = rl.tensor(numbers, dtype=dtype)
    assert made.dtype == right.dtype and made.device.startswith(device)
    np.testing.assert_array_equal(to_float64(made), to_float64(right))
    if dtype == "int64":
        assert made.tolist() == numbers.tolist()
    assert (c.launches, c.flops, c.bytes_read, c.bytes_written) == (len(numbers) > 0, 0, 0, made.nbytes)


def test_a_graph_captures_them(device):
    x, graph = rl.ones(5, device=device), rl.Graph(device=device)
    with graph.capture():
        y = x + rl.arange(5, device=device)
    x.copy_(rl.full((5,), 10.0, device=device))
    graph.replay()
    assert y.tolist() == [10.0, 11.0, 12.0, 13.0, 14.0]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "int64"])
@pytest.mark.parametrize(
    "arguments", [(0, 1, 7), (-3, 9.5, 100_000), (2, 2, 5), (1, 0, 3), (5, 9, 1), (5, 9, 0), (0.1, 0.7, 3)]
)
def test_linspace_is_numpy_in_one_launch(arguments, dtype, device):
    right = rl.tensor(np.linspace(*arguments)).to(dtype)
    with rl.count() as c:
        found = rl.linspace(*arguments, dtype=dtype, device=device)
    assert found.tolist() == right.tolist()
    assert c.launches == (arguments[2] > 0)


def test_a_distance_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"\[linspace\] expected numbers whose distance is finite, got -1e\+308 and"):
        rl.linspace(-1e308, 1e308, 3)
