"""softmax of rows that a GPU's registers do not hold, at any place in memory."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

ALLOWED = {"float64": 1e-12, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("rows", "length"),
    [(3, 33001), (40, 33001), (40, 33008), (2, 70003)],  # few rows are shared by blocks
)
@pytest.mark.parametrize("left_out", [0, 1])  # elements of each row before those that are read
def test_long_rows(name, dtype, rows, length, left_out, device):
    x = 4 * np.random.default_rng(0).standard_normal((rows, length + left_out))
    x[0, 7], x[1, 9 + left_out], x[2 % rows, 40 + left_out] = np.nan, np.inf, -np.inf
    own = rl.tensor(x, dtype=dtype, device=device)[:, left_out:]
    exact = own.to("float64").cpu().numpy()
    with np.errstate(invalid="ignore"):
        shifted = exact - exact.max(1, keepdims=True)
        total = np.exp(shifted).sum(1, keepdims=True)
        right = np.exp(shifted) / total if name == "softmax" else shifted - np.log(total)
    y = getattr(rl, name)(own, 1)
    assert np.isnan(right[:2]).all()
    # The exponential of a distance of up to 40 is off by as many roundings of it. A probability is some 1e-5 here, of
    # which float16 keeps few digits.
    smallest = 6e-8 if dtype == "float16" else 0
    assert_close(y, right, rtol=2 * ALLOWED[dtype], atol=smallest if name == "softmax" else ALLOWED[dtype])
