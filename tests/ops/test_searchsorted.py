"""How many numbers of a sorted row are at most a value: what random choices with replacement are found by."""

import numpy as np
import pytest

import rooflab as rl
from rooflab import _core


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "int32"])
@pytest.mark.parametrize(("rows", "n", "m"), [(1, 1, 5), (3, 7, 40), (2, 1000, 3000), (5, 4, 0)])
def test_places_are_those_of_numpy(dtype, rows, n, m, device):
    rng = np.random.default_rng(0)
    ranks = np.sort(rng.integers(0, n, (rows, n)), 1)  # many are equal
    values = rng.integers(-2, n + 2, (rows, m))
    found = _core._searchsorted(*(rl.tensor(x, device=device).to(dtype) for x in (ranks, values)))
    kept = [rl.tensor(x).to(dtype).double().numpy() for x in (ranks, values)]
    right = [np.searchsorted(*row, side="right") for row in zip(*kept, strict=True)]
    assert found.dtype == "int64" and (found.cpu().numpy() == np.array(right).reshape(rows, m)).all()


@pytest.mark.parametrize(("rows", "values"), [((1, 3), (5, 3)), ((3,), (1, 3)), ((2, 0), (3, 4)), ((), ())])
def test_rows_that_are_not_there_are_not_read(rows, values):
    with pytest.raises(ValueError, match=r"\[searchsorted\] values: expected .* but for the last dimension"):
        _core._searchsorted(rl.ones(*rows), rl.ones(*values))
