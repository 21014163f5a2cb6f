"""DLPack capsules as the standard allows them: made by hand, with what NumPy and PyTorch never set."""

import ctypes

import numpy as np

import rooflab as rl


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class DLManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def test_a_byte_offset_and_no_strides():
    """No strides mean row after row; the data begin `byte_offset` bytes behind the pointer."""
    array = np.arange(24, dtype=np.float32)
    shape = (ctypes.c_int64 * 3)(2, 3, 2)
    cpu = (ctypes.c_int32 * 2)(1, 0)
    tensor = DLTensor(array.ctypes.data, cpu, 3, 2, 32, 1, shape, None, 5 * array.itemsize)
    managed = DLManagedTensor(tensor, None, None)
    found = rl.from_dlpack(new_capsule(ctypes.addressof(managed), b"dltensor", None))
    assert (found.shape, found.strides) == ((2, 3, 2), (6, 2, 1))
    np.testing.assert_array_equal(found.numpy(), array[5:17].reshape(2, 3, 2))
    found[0, 0, 0] = -1
    assert array[5] == -1
