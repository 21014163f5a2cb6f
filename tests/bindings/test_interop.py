"""NumPy, DLPack and __cuda_array_interface__, both ways, without copies."""

import gc
import types
import weakref

import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close


def test_numpy_reads_dlpack_without_a_copy():
    tensor = rl.tensor(np.arange(6.0).reshape(2, 3))
    array = np.from_dlpack(tensor.T)
    assert array.shape == (3, 2)
    tensor[0, 2] = 50
    assert array[2, 0] == 50


def test_numpy_arrays_come_in_through_dlpack():
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    tensor = rl.from_dlpack(array)
    assert tensor.strides == (4, 2)
    array[1, 1] = 99
    assert tensor[1, 1].item() == 99


def test_memory_lives_as_long_as_either_side_needs_it():
    class Watched(np.ndarray):
        pass

    array = np.ones(1000).view(Watched)
    gone = weakref.ref(array)
    tensor = rl.from_dlpack(array)
    del array
    gc.collect()
    assert tensor.sum().item() == 1000
    del tensor
    gc.collect()
    assert gone() is None
    view = np.from_dlpack(rl.ones(1000))
    gc.collect()
    assert view.sum() == 1000


def test_a_capsule_is_used_once():
    capsule = rl.ones(3).__dlpack__()
    rl.from_dlpack(capsule)
    with pytest.raises(ValueError, match="used before"):
        rl.from_dlpack(capsule)
    with pytest.raises(TypeError, match="__dlpack__"):
        rl.from_dlpack([1, 2])


def test_dlpack_to_another_device_is_refused():
    x = rl.ones(3)
    for own in (None, x.__dlpack_device__()):
        assert rl.from_dlpack(x.__dlpack__(dl_device=own)).tolist() == [1, 1, 1]
    for other in ((2, 0), (1, 1), "cuda"):
        with pytest.raises(BufferError, match=r"\[__dlpack__\] dl_device: expected None or .* cpu"):
            x.__dlpack__(dl_device=other)


def test_unknown_dlpack_types_are_refused():
    with pytest.raises(ValueError, match="no rooflab type"):
        rl.from_dlpack(np.ones(3, dtype=np.uint8))


def test_borrowed_memory_is_not_counted(no_garbage):
    before = rl.memory.allocated()
    tensor = rl.from_dlpack(np.ones(1000))
    assert rl.memory.allocated() == before
    assert tensor.shape == (1000,)


def test_cpu_tensors_have_no_cuda_interface():
    assert not hasattr(rl.ones(3), "__cuda_array_interface__")
    with pytest.raises(AttributeError, match="the tensor is on cpu"):
        rl.from_cuda_array(rl.ones(3))
    with pytest.raises(ValueError, match=r"^\[from_cuda_array\] array: expected an object with .*, got int"):
        rl.from_cuda_array(5)


def test_cuda_arrays_between_elements_are_refused():
    interface = {"shape": (4,), "typestr": "<f4", "data": (4098, False), "version": 3}
    with pytest.raises(ValueError, match=r"^\[from_cuda_array\] array: expected an address that is a multiple of 4"):
        rl.from_cuda_array(types.SimpleNamespace(__cuda_array_interface__=interface))


def test_bfloat16_reaches_numpy():
    array = rl.tensor([1.0, 2.5], dtype="bfloat16").numpy()
    assert str(array.dtype) == "bfloat16"
    assert rl.tensor(array).dtype == "bfloat16"
    assert array.astype(np.float32).tolist() == [1.0, 2.5]


@pytest.mark.gpu
@pytest.mark.peer
def test_torch_shares_gpu_memory():
    torch = pytest.importorskip("torch")
    ours = rl.randn(3, 4, device="cuda")
    theirs = torch.from_dlpack(ours)
    theirs[1, 2] = 42
    torch.cuda.synchronize()
    assert ours[1, 2].item() == 42
    back = rl.from_cuda_array(theirs.T)
    assert back.strides == (1, 4)
    assert_close(back.T, ours, rtol=0, atol=0)
    assert_close(rl.tensor(theirs), ours, rtol=0, atol=0)


@pytest.mark.peer
def test_torch_shares_cpu_memory():
    torch = pytest.importorskip("torch")
    ours = rl.randn(3, 4, dtype="bfloat16")
    theirs = torch.from_dlpack(ours)
    assert theirs.dtype == torch.bfloat16
    theirs[1, 2] = 42
    assert ours[1, 2].item() == 42


def test_numpy_scalars_leave_arithmetic_to_tensors():
    product = np.sqrt(np.float64(4)) * rl.tensor([1.0, 2.0])
    assert isinstance(product, rl.Tensor)
    assert product.tolist() == [2, 4]
    assert product.dtype == "float32"
    doubles = np.ones(2) * rl.ones(2)
    assert isinstance(doubles, rl.Tensor) and doubles.dtype == "float64"
