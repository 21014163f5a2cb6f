"""Tensors: making them, viewing them, indexing, moving them, and every way of getting it wrong."""

import copy

import ml_dtypes
import numpy as np
import pytest

import rooflab as rl
from rooflab.testing import assert_close

DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip(dtype, device):
    array = np.arange(24).reshape(2, 3, 4) % 5
    tensor = rl.tensor(array, dtype=dtype, device=device)
    assert tensor.shape == (2, 3, 4)
    assert tensor.strides == (12, 4, 1)
    assert tensor.dtype == dtype
    assert tensor.nbytes == 24 * tensor.dtype.itemsize
    assert tensor.device == {"cuda": "cuda:0"}.get(device, device)
    assert_close(tensor, array.astype(bool) if dtype == "bool" else array, rtol=0, atol=0)
    assert str(tensor.cpu().numpy().dtype) == dtype


def test_numpy_shares_memory_and_keeps_it_alive():
    array = rl.tensor([1.0, 2.0, 3.0]).numpy()
    assert array.dtype == np.float32
    tensor = rl.zeros(3)
    tensor.numpy()[1] = 5
    assert tensor.tolist() == [0, 5, 0]
    assert array.tolist() == [1, 2, 3]


@pytest.mark.parametrize("kind", [rl.Tensor, type("Subclass", (rl.Tensor,), {})])
@pytest.mark.parametrize("make", [lambda kind: kind(), lambda kind: kind.__new__(kind), lambda kind: kind([1.0])])
def test_no_tensor_is_made_without_memory(kind, make):
    with pytest.raises(TypeError, match=r"\[Tensor\] make one by rl\.tensor\(data\)|__new__\(.+\) is not safe"):
        make(kind)


def test_types_are_inferred_as_in_pytorch():
    assert rl.tensor([1.5]).dtype == rl.float32
    assert rl.tensor([1]).dtype == rl.int64
    assert rl.tensor([True]).dtype == rl.bool_
    assert rl.tensor(np.ones(2)).dtype == "float64"
    assert rl.tensor(3.5).shape == ()
    assert rl.tensor([]).shape == (0,)


@pytest.mark.parametrize("bad", [["a"], [[1, 2], [3]], object(), np.ones(2, complex), None])
def test_tensor_refuses_what_is_not_numbers(bad):
    with pytest.raises(ValueError):
        rl.tensor(bad)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1],
        lambda x: x[-1, 2],
        lambda x: x[:, 1:3],
        lambda x: x[..., ::2],
        lambda x: x[0, ..., None],
        lambda x: x[1:0],
        lambda x: x[:, -2:, 100:],
        lambda x: x.transpose(0, -1) if isinstance(x, rl.Tensor) else x.swapaxes(0, -1),
        lambda x: x.reshape(6, 4),
        lambda x: x.reshape(2, -1),
        lambda x: x[:, :, 0].reshape(-1),
        lambda x: x[::-1],
        lambda x: x[:, ::-2, ::-1],
        lambda x: x[1, 2:0:-1, None, ::3],
        lambda x: x[..., -2::-1],
        lambda x: x[:, 0:5:-1],
        lambda x: x[:, :, :: -(2**63)],
    ],
)
def test_views_agree_with_numpy(view, device):
    array = np.arange(24.0).reshape(2, 3, 4)
    assert_close(view(rl.tensor(array, device=device)), view(array), rtol=0, atol=0)


def test_views_share_memory(device):
    base = rl.zeros(4, 6, device=device)
    view = base.T[1:3, ::2]
    view[...] = 7
    expected = np.zeros((4, 6))
    expected.T[1:3, ::2] = 7
    assert_close(base, expected, rtol=0, atol=0)
    assert base.view(2, 12).data_ptr() == base.data_ptr()
    assert base.permute(1, 0).shape == (6, 4)
    assert base.unsqueeze(1).squeeze().shape == (4, 6)
    assert base[:, :1].expand(4, 9).strides == (6, 0)
    assert base.flatten().shape == (24,)


def test_assignment(device):
    tensor = rl.zeros(3, 4, device=device)
    tensor[0, 1] = 2.5
    tensor[1] = rl.tensor([1.0, 2.0, 3.0, 4.0], device=device)
    tensor[2, :2] = [8, 9]
    tensor[0, 1] += 1
    assert tensor.tolist() == [[0, 3.5, 0, 0], [1, 2, 3, 4], [8, 9, 0, 0]]
    with pytest.raises(ValueError):
        tensor[1] = [1.0, 2.0]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda x: x[2], IndexError),
        (lambda x: x[0, 0, 0, 0], IndexError),
        (lambda x: x[..., ...], IndexError),
        (lambda x: x["a"], IndexError),
        (lambda x: x[1.5], IndexError),
        (lambda x: x[::0], ValueError),
        (lambda x: x.view(5), ValueError),
        (lambda x: x.transpose(0, 1).view(24), ValueError),
        (lambda x: x.view(-1, -1), ValueError),
        (lambda x: x.transpose(0, 3), ValueError),
        (lambda x: x.permute(0, 0, 1), ValueError),
        (lambda x: x.expand(5, 3, 4), ValueError),
        (lambda x: x.unsqueeze(9), ValueError),
        (lambda x: x.flatten(2, 1), ValueError),
        (lambda x: x.item(), ValueError),
        (lambda x: x.to("float8"), ValueError),
        (lambda x: x.T, AttributeError),
        (lambda x: bool(x), ValueError),
        (lambda x: x.size(7), ValueError),
        (lambda _: rl.empty(-1), ValueError),
        (lambda _: rl.empty(2**40, 2**40), ValueError),
        (lambda _: rl.empty(2**62), ValueError),
        (lambda _: rl.empty(2**60, dtype="float64"), ValueError),
        (lambda _: rl.empty(*[1] * 9), ValueError),
        (lambda _: rl.empty("ab"), Exception),
        (lambda _: rl.zeros(2, device="tpu"), ValueError),
        (lambda _: rl.zeros(2, device="cuda:"), ValueError),
        (lambda _: rl.zeros(2, dtype="int8"), ValueError),
        (lambda _: rl.arange(0, 5, 0), ValueError),
        (lambda _: len(rl.tensor(1.0)), TypeError),
    ],
)
def test_mistakes_are_errors(act, error):
    with pytest.raises(error):
        act(rl.zeros(2, 3, 4))


def test_sizes_are_checked_before_memory_is_asked_for():
    with pytest.raises(rl.OutOfMemoryError, match=r"out of memory on cpu: asked for 4\.5 PB, tensors hold"):
        rl.empty(2**50, dtype="float32")
    assert rl.ones(3).sum().item() == 3


@pytest.mark.gpu
def test_gpu_out_of_memory_leaves_the_runtime_usable():
    with pytest.raises(rl.OutOfMemoryError, match="out of memory on cuda:0"):
        rl.empty(2**42, device="cuda")
    assert rl.ones(3, device="cuda").sum().item() == 3


@pytest.mark.skipif(rl.cuda.is_available(), reason="needs a machine without a GPU")
def test_without_a_gpu_one_sentence_says_so():
    with pytest.raises(rl.CudaError, match="no CUDA device can be used"):
        rl.zeros(2, device="cuda")
    assert not rl.cuda.is_available()


def test_scalars():
    assert rl.tensor(2.5).item() == 2.5
    assert isinstance(rl.tensor(3).item(), int)
    assert float(rl.tensor([2.5])) == 2.5
    assert int(rl.tensor(3)) == 3
    assert [10, 20][rl.tensor(1)] == 20
    assert bool(rl.tensor(0.0)) is False
    with pytest.raises(TypeError):
        [10, 20][rl.tensor(1.0)]


def test_repr_reads_like_the_array(device):
    text = repr(rl.tensor([[1.0, 2.0]], dtype="bfloat16", device=device))
    assert text.startswith("tensor([[1, 2]], dtype=bfloat16")
    assert ("device='cuda:" in text) == (device != "cpu")


def test_dtypes_compare_with_their_names():
    assert rl.float32 == "float32"
    assert rl.float32 != rl.float16
    assert str(rl.bfloat16) == "bfloat16"
    assert len({rl.int32, rl.zeros(1, dtype="int32").dtype}) == 1


def test_to_returns_itself_when_nothing_changes(device):
    tensor = rl.zeros(3, device=device)
    assert tensor.to("float32") is tensor and tensor.to(device) is tensor
    assert tensor.to(rl.float16).dtype == "float16"
    assert tensor.contiguous() is tensor
    assert tensor.clone().data_ptr() != tensor.data_ptr()


NOTHING_TO_DO = {
    "to of nothing": lambda x: x.to(),
    "to a dtype": lambda x: x.to(rl.float32),
    "to a device": lambda x: x.to("cpu"),
    "to another": lambda x: x.to(rl.ones(1)),
    "to by name": lambda x: x.to(device="cpu", dtype="float32"),
    "cpu": lambda x: x.cpu(),
    "float": lambda x: x.float(),
    "type_as": lambda x: x.type_as(rl.ones(1)),
    "cast": lambda x: rl.cast(x, "float32"),
    "contiguous": lambda x: x.contiguous(),
    "as_tensor": rl.as_tensor,
    "plus": lambda x: +x,
    "requires_grad_": lambda x: x.requires_grad_(),
}


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_where_there_is_nothing_to_do_the_result_is_the_same_object(name):
    for leaf in (rl.ones(2, 3, requires_grad=True), rl.ones(2, requires_grad=True)[None], rl.ones(2, 3)):
        assert NOTHING_TO_DO[name](leaf) is leaf


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "bfloat16", "int64", "int32", "bool"])
def test_a_cast_to_the_dtype_that_it_has_is_the_same_object(name):
    names = {"float64": "double", "float32": "float", "float16": "half", "int64": "long", "int32": "int"}
    x = rl.zeros(2, dtype=name)
    assert getattr(x, names.get(name, name))() is x


def test_views_and_copies_are_other_objects():
    w = rl.ones(3, requires_grad=True)
    for view in (w.T, w.t(), w.view(3), w.reshape(3), w.detach(), w.data, w.clone(), w.double(), copy.copy(w)):
        assert view is not w
    assert not w.T.is_leaf and rl.tensor(1.0).T.item() == 1


def test_writes_in_place_return_the_same_object():
    x = rl.ones(2)
    for write in (lambda: x.fill_(2), lambda: x.fill_(rl.tensor(2.0)), lambda: x.zero_(), lambda: x.copy_(rl.ones(2))):
        assert write() is x


def test_what_is_set_in_the_result_of_a_call_with_nothing_to_do_is_set_in_the_tensor():
    w = rl.ones(2)
    v = w.cpu()
    v.requires_grad_()
    v.data = rl.zeros(2)
    assert w.requires_grad and w.tolist() == [0, 0]
    with pytest.raises(ValueError, match="this tensor is there twice"):
        rl.optim.AdamW([{"params": [w]}, {"params": [w.float()]}])
    tied, other = rl.nn.Linear(2, 2, bias=False), rl.nn.Linear(2, 2, bias=False)
    other.weight = tied.weight.to("cpu")
    assert len(list(rl.nn.ModuleList([tied, other]).parameters())) == 1


def test_a_slice_with_a_negative_step_is_a_copy():
    for size in (0, 1, 2):
        x = rl.zeros(size, 3)
        for y in (x[::-1], x[:, 1::-2], x[-1:-2:-1]):
            assert all(stride >= 0 for stride in y.stride())
            y.fill_(7)
        assert (x == 0).all()


def test_a_step_beyond_the_end_gives_the_first_element():
    x = rl.arange(10)
    for step in (10, 2**62, 2**63 - 1):
        assert x[::step].tolist() == [0] and x[3::step].tolist() == [3]
    assert x[5 : 5 : 2**63 - 1].shape == (0,)


@pytest.mark.parametrize("index", [slice(None, None, -1), (slice(None), slice(3, None, -2)), (0, slice(-2, 0, -1))])
def test_backward_slices_are_copied_written_and_differentiated(index, device):
    array = np.arange(20.0).reshape(4, 5)
    x = rl.tensor(array, device=device, requires_grad=True)
    y = x[index]
    assert min(y.strides) > 0
    weights = np.arange(1.0, y.numel() + 1).reshape(y.shape)
    (y * rl.tensor(weights, device=device)).sum().backward()
    expected = np.zeros((4, 5))
    expected[index] = weights
    assert_close(x.grad, expected, rtol=0, atol=0)
    written = x.detach().clone()
    written[index] = rl.tensor(weights, device=device)
    array[index] = weights
    assert_close(written, array, rtol=0, atol=0)
    written[index] = written[index]
    written[index] = -1
    array[index] = -1
    assert_close(written, array, rtol=0, atol=0)


def test_a_tensor_reversed_onto_itself():
    x = rl.arange(1000)
    x[:] = x[::-1]
    assert x.tolist() == list(range(999, -1, -1))
    x[::-1] = x
    assert x.tolist() == list(range(1000))


def test_shapes_of_nothing_are_printed():
    assert repr(rl.zeros(0)) == "tensor([])"
    assert repr(rl.zeros(0, 3)) == "tensor([], shape=(0, 3))"
    assert repr(rl.zeros(2, 0, dtype="int64")) == "tensor([], shape=(2, 0), dtype=int64)"


NAMES = {
    "float64": ["double", "fp64", float, np.float64, np.dtype("float64")],
    "float32": ["float", "fp32", np.float32, np.dtype("<f4")],
    "float16": ["half", "fp16", np.float16],
    "bfloat16": ["bf16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)],
    "int64": ["long", int, np.int64, np.dtype(int)],
    "int32": ["int", np.int32],
    "bool": ["bool_", bool, np.bool_, np.dtype(bool)],
}


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_has_the_names_that_others_give_it(name):
    dtype = rl.bool_ if name == "bool" else getattr(rl, name)
    for alias in (name, dtype, *NAMES[name]):
        assert rl.zeros(2, dtype=alias).dtype == alias == dtype
        assert rl.zeros(2).to(alias).dtype is dtype
        assert rl.tensor([1], dtype=alias).dtype == dtype
        assert (dtype != alias) is False
        for other in set(NAMES) - {name}:
            assert rl.zeros(1, dtype=other).dtype != alias
    assert hash(dtype) == hash(rl.zeros(1, dtype=name).dtype)


@pytest.mark.parametrize("wrong", ["float8", "int8", np.int8, complex, str, 3, object()])
def test_what_is_no_dtype_is_refused(wrong):
    assert rl.float32 != wrong
    with pytest.raises(ValueError, match=r"\[dtype\] expected float64, float32"):
        rl.zeros(2, dtype=wrong)


def test_to_takes_a_tensor_and_either_order():
    x, like = rl.ones(2), rl.ones(1, dtype="float16", device="meta")
    assert x.to("meta", "float16").dtype == x.to("float16", "meta").dtype == x.to(rl.ones(1, dtype="half")).dtype
    assert x.device == "cpu" and rl.ones(2, device="meta").to(like).dtype == "float16"
    assert (x.long().dtype, x.int().dtype, x.bool().dtype, x.half().dtype) == ("int64", "int32", "bool", "float16")
