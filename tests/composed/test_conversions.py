"""Tensors of arrays, and what dtypes can hold."""

import ml_dtypes
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


def test_arrays_that_cannot_be_shared_are_refused_or_copied():
    fixed, other = np.ones(2), np.ones(2, ">f4")
    fixed.flags.writeable = False
    for array, says in (
        (fixed, "expected one that can be written to; write rl.tensor"),
        (np.broadcast_to(np.ones(1), (3,)), "expected one that can be written to"),
        (other, "expected one of float64, float32, float16, int64, int32, bool, got >f4; write rl.tensor"),
        (np.ones(2, ml_dtypes.bfloat16), "expected one of .*, got bfloat16"),
        (np.ones(2, np.uint8), r".*got uint8; write rl.tensor\(array\), or rl.tensor\(array.astype"),
        (np.ones(2, complex), ".*got complex128"),
        (np.array([None]), ".*got object"),
        (np.array(["a"]), ".*got <U1"),
        (np.zeros(1, [("a", "f4")]), ".*got .*'a'"),
    ):
        with pytest.raises(ValueError, match=rf"^\[from_numpy\] array: {says}"):
            rl.from_numpy(array)
    for array in (fixed, other, np.ones(2, ml_dtypes.bfloat16)):
        copy = rl.as_tensor(array)
        copy.fill_(5)
        assert copy.dtype == (
            "bfloat16" if "bf" in str(array.dtype) else f"float{8 * array.itemsize}"
        ) and array.astype(float).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "is_shared"),
    [
        ({}, True),
        ({"dtype": "float32"}, True),
        ({"dtype": rl.float32, "device": "cpu"}, True),
        ({"dtype": "half"}, False),
    ],
)
def test_as_tensor_shares_an_array_of_the_dtype_that_is_asked_for(options, is_shared):
    array = np.zeros(2, np.float32)
    rl.as_tensor(array, **options).fill_(1)
    assert array.tolist() == [is_shared] * 2
    array = np.zeros((3, 3), np.float32)
    rl.as_tensor(array[::2, ::-1], **options).fill_(1)
    assert array.sum() == 6 * is_shared
