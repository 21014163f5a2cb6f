"""Tensors of arrays, and what dtypes can hold."""

import numpy as np
import pytest

import rooflab as rl


def test_conversions_share_memory_where_they_can():
    array = np.zeros(3, np.float32)
    shared, same = rl.from_numpy(array), rl.as_tensor(array)
    array[0] = 1
    assert shared.tolist() == same.tolist() == [1.0, 0.0, 0.0]
    assert rl.as_tensor(shared) is shared and rl.as_tensor(shared, dtype="float64").dtype == "float64"
    fixed = np.ones(2)
    fixed.flags.writeable = False
    assert rl.as_tensor(fixed).tolist() == [1.0, 1.0] and rl.as_tensor([1, 2]).dtype == "int64"
    assert rl.as_tensor(np.ones((4, 4))[::2, ::-1]).shape == (2, 4)
    assert rl.finfo("bfloat16").eps == 2**-7 and rl.finfo(rl.float32).bits == 32 and rl.iinfo("int32").max == 2**31 - 1
    with pytest.raises(TypeError, match="expected a NumPy array, got list"):
        rl.from_numpy([1])
