"""Input that once crashed the process, hung it, or gave a wrong result in silence."""

import ctypes
import gc
import subprocess
import sys

import numpy as np
import pytest
from ops.samples import of_each_rung

import rooflab as rl


def run_python(code, seconds=100):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds)


@pytest.mark.parametrize("shapes", [((0,), (0,)), ((1, 0), (0, 5)), ((5, 0), (0, 1)), ((2, 1, 0), (2, 0, 5))])
def test_products_over_nothing_are_zeros(shapes, device):
    a, b = (rl.ones(*shape, device=device) for shape in shapes)
    expected = np.ones(shapes[0]) @ np.ones(shapes[1])
    product = a @ b
    assert product.shape == expected.shape
    assert not product.cpu().numpy().any()


@pytest.mark.parametrize("copied", [np.array, np.copy, lambda t: t.__array__(copy=True)])
def test_copies_of_numpy_are_copies(copied):
    t = rl.zeros(3)
    array = copied(t)
    array[0] = 7
    assert t.tolist() == [0, 0, 0] and array.dtype == np.float32


def test_numpy_views_where_it_may():
    t = rl.zeros(3)
    np.asarray(t)[1] = 5
    assert t.tolist() == [0, 5, 0]
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert t.__array__(np.float32, copy=False).tolist() == [0, 5, 0]
    with pytest.raises(ValueError, match=r"\[numpy\] copy: another dtype needs a copy"):
        t.__array__(np.float64, copy=False)


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_integers_beside_a_float_keep_all_digits_where_int64_is_asked_for(whole):
    assert rl.tensor([[1.5, whole], [-2.7, 3]], dtype="int64").tolist() == [[1, whole], [-2, 3]]
    target = rl.zeros(2, dtype="int64")
    target[:] = [whole, 0.5]
    assert target.tolist() == [whole, 0]


# Between two 16-bit numbers, so near to the middle that float32 holds the middle itself.
NEAR_TIES = {
    "float16": {-81.84374661415325: -81.8125, 1 + 2**-11 + 2**-40: 1 + 2**-10, 2**-25 + 2**-60: 2**-24},
    "bfloat16": {1 + 2**-8 + 2**-40: 1 + 2**-7, 1 + 2**-8 - 2**-40: 1.0, -(1 + 2**-8 + 2**-40): -1 - 2**-7},
}


@pytest.mark.parametrize("dtype", NEAR_TIES)
@pytest.mark.parametrize(
    "rounded",
    [
        lambda x, dtype: rl.tensor(x).to(dtype),
        lambda x, dtype: rl.cast(rl.tensor(x), dtype, variant="v0_reference"),
        lambda x, dtype: rl.tensor(x, dtype=dtype),
        lambda x, dtype: rl.empty(1, dtype=dtype).fill_(float(x[0])),
        lambda x, dtype: rl.empty(1, dtype=dtype).copy_(rl.tensor(x)),
    ],
)
def test_float64_is_rounded_to_16_bits_once(dtype, rounded):
    for value, nearest in NEAR_TIES[dtype].items():
        assert rounded(np.array([value]), dtype).item() == nearest


def test_random_float64_is_rounded_as_numpy_does():
    x = np.random.default_rng(0).standard_normal(100_000) * 2.0 ** np.random.default_rng(1).integers(-30, 20, 100_000)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(rl.tensor(x).to("float16").numpy(), expected)
    np.testing.assert_array_equal(rl.tensor(x, dtype="float16").numpy(), expected)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_integers_are_rounded_to_16_bits_once(dtype):
    tie, step = (2**60 + 2**52, 2**53) if dtype == "int64" else (2**30 + 2**22, 2**23)
    x = rl.tensor([tie - 1, tie, tie + 1, -tie - 1], dtype=dtype)
    low = tie - step // 2
    for variant in ("", "v0_reference"):
        assert rl.cast(x, "bfloat16", variant=variant).to("float64").tolist() == [low, low, low + step, -low - step]


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([2**40], "int32"),
        ([-(2**31) - 1], "int32"),
        ([float("nan")], "int32"),
        ([float("inf")], "int64"),
        (np.array([2.0**63]), "int64"),
        (np.array([np.nan]), "int64"),
        (np.array([1e10], np.float32), "int32"),
    ],
)
def test_data_that_an_integer_cannot_hold_is_refused(data, dtype):
    with pytest.raises(ValueError, match=rf"\[tensor\] data: expected numbers that {dtype} can hold, got "):
        rl.tensor(data, dtype=dtype)
    with pytest.raises(ValueError, match="can hold"):
        rl.zeros(1, dtype=dtype)[:] = data


BEYOND_INT64 = [
    2**63, [2**64 - 1], np.array([0, 2**63 + 5], np.uint64), [1, 2**63], [[0, -1], [1, 2**64 - 1]],
    (-1, np.uint64(2**63)),
]  # fmt: skip


@pytest.mark.parametrize("data", BEYOND_INT64)
@pytest.mark.parametrize("dtype", [None, "int64", "int32", "bool"])
def test_integers_beyond_int64_are_refused(data, dtype):
    with pytest.raises(ValueError, match=r"\[tensor\] data: .* int64 can hold, got (9|18)\d{18,19}$"):
        rl.tensor(data, dtype=dtype)
    for read in (rl.as_tensor, lambda data: rl.arange(2) == data):
        with pytest.raises(ValueError, match="int64 can hold"):
            read(data)


@pytest.mark.parametrize("data", [*BEYOND_INT64, 2**70, [1, -(2**70)], [1.5, 2**70], [np.float32(1.5), 2**70]])
def test_floats_hold_integers_beyond_int64(data):
    expected = np.asarray(data).astype(np.float64)
    assert rl.tensor(data, dtype="float64").tolist() == expected.tolist()
    assert rl.tensor(data, dtype="float32").tolist() == expected.astype(np.float32).tolist()
    with pytest.raises(ValueError, match=r"\[tensor\] data: expected numbers that float64 can hold, got 1000"):
        rl.tensor([1.5, 10**400])


def test_a_float_makes_a_list_floating():
    assert rl.tensor([1.5, 2**70]).dtype == "float32" and rl.tensor([np.float64(1.5), 2**70]).dtype == "float64"
    assert rl.tensor([1, 2.0**63]).dtype == "float32" and rl.tensor([]).dtype == rl.tensor([[], []]).dtype == "float32"


def test_integers_that_int64_can_hold_stay_exact():
    mixed = rl.tensor([np.uint64(16777217), -1])
    assert mixed.dtype == "int64" and mixed.tolist() == [16777217, -1]
    assert rl.tensor([np.uint64(2**53 + 1), -1], dtype="int64").tolist() == [2**53 + 1, -1]


@pytest.mark.parametrize("kind", ["int8", "int16", "uint8", "uint16", "uint32", "uint64", "longdouble"])
def test_numbers_of_types_that_no_tensor_has_are_converted(kind):
    array = np.array([1, 3], kind)
    dtype = "float64" if kind == "longdouble" else "int64"
    for made in (rl.tensor(array), rl.as_tensor(array), rl.tensor([array[0], array[1]]), rl.tensor([array])[0]):
        assert made.dtype == dtype and made.tolist() == [1, 3]
    assert rl.tensor(array[1]).dtype == dtype and (rl.ones(2) + array).tolist() == [2, 4]
    assert rl.tensor(array, dtype="int32").dtype == "int32"


def test_data_that_an_integer_can_hold_is_taken():
    assert rl.tensor(np.array([2**63 - 1], np.uint64), dtype="int64").tolist() == [2**63 - 1]
    assert rl.tensor(np.zeros(0, np.uint64), dtype="int64").shape == (0,)
    assert rl.tensor([2**31 - 1, -(2**31)], dtype="int32").tolist() == [2**31 - 1, -(2**31)]
    assert rl.tensor([2.75, -2.75], dtype="int32").tolist() == [2, -2]
    assert rl.tensor([-(2.0**63)], dtype="int64").tolist() == [-(2**63)]
    assert rl.tensor([float("nan"), 0.0, 0.5], dtype="bool").tolist() == [True, False, True]
    assert rl.tensor(np.array([3], np.uint8), dtype="float32").tolist() == [3]


@pytest.mark.parametrize("variant", ["", "v0_reference"])
def test_casts_to_integers_saturate_and_nan_is_0(variant, device):
    x = rl.tensor([float("nan"), 1e30, -1e30], device=device)
    assert rl.cast(x, "int32", variant=variant).tolist() == [0, 2**31 - 1, -(2**31)]
    assert rl.cast(x, "int64", variant=variant).tolist() == [0, 2**63 - 1, -(2**63)]


def test_bytes_of_bool_are_0_and_1():
    odd = np.array([[2, 1], [0, 1]], np.uint8).view(bool)
    assert rl.tensor(odd).sum().item() == 3
    assert rl.tensor(odd).to("int32").tolist() == [[1, 1], [0, 1]]
    with pytest.raises(ValueError, match=r"\[from_dlpack\] bool: expected bytes of 0 and 1"):
        rl.from_dlpack(odd)
    assert rl.from_dlpack(odd[1:]).tolist() == [[False, True]]


class _DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


def test_a_capsule_of_negative_dimensions_is_refused():
    capsule = rl.ones(3).__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    _DlTensor.from_address(pointer(capsule, b"dltensor")).ndim = -1
    with pytest.raises(ValueError, match=r"\[from_dlpack\] ndim: expected >= 0 .* got -1"):
        rl.from_dlpack(capsule)


def test_attributes_are_there_or_not():
    assert hasattr(rl.ones(2, 3), "T") and hasattr(rl.ones(2), "T")
    assert not hasattr(rl.ones(2, 3, 4), "T")
    assert hasattr(rl.ones(2, 3, 4), "mT") and not hasattr(rl.ones(2), "mT")
    with pytest.raises(AttributeError, match=r"\[T\] expected at most 2 dimensions, got shape \(2, 3, 4\)"):
        _ = rl.ones(2, 3, 4).T


def test_numbers_of_any_size_index_or_raise():
    x = rl.arange(3)
    for index in (2**70, -(2**70), 2**63, 3, -4):
        with pytest.raises(IndexError):
            x[index]
    assert x[2**70 :].shape == (0,) and x[: 2**70].shape == (3,)


def test_arguments_of_a_wrong_kind_are_type_errors():
    with pytest.raises(TypeError):
        rl.variants("matmul", 3)


def test_a_pool_of_processes_works_after_use():
    done = run_python(
        """
import multiprocessing, rooflab as rl
def work(i):
    return (rl.ones(1 << 18) + i).sum().item() + rl.matmul(rl.ones(200, 200), rl.ones(200, 200)).sum().item()
rl.set_num_threads(4)
work(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(4)) == [(1 << 18) * (i + 1) + 200.0**3 for i in range(4)]
"""
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the module of subinterpreters has another name")
def test_a_subinterpreter_is_refused():
    done = run_python(
        """
import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
try:
    import rooflab
except ImportError as error:
    assert "subinterpreter" in str(error), error  # in Python 3.12 ctypes refuses before rooflab does
else:
    raise AssertionError("imported")
''')
""",
        seconds=60,
    )
    assert done.returncode == 0, done.stderr


def test_no_grad_refuses_what_runs_later():
    async def coroutine():
        pass

    async def generator():
        yield

    for function in (coroutine, generator, lambda: (yield)):
        with pytest.raises(TypeError, match=r"\[no_grad\] expected a function, and no generator or async function"):
            rl.no_grad(function)


def test_a_result_that_forward_keeps_on_its_ctx_is_collected(no_garbage):
    class Keeps(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            ctx.save_for_backward(ctx.y)
            return ctx.y

        @staticmethod
        def backward(ctx, dy):
            return dy

    before = rl.memory.allocated()
    for _ in range(3):
        Keeps.apply(rl.ones(1000, requires_grad=True))
    gc.collect()
    assert rl.memory.allocated() == before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("d", [1, 4, 77, 4096, 40000])
def test_rungs_of_rms_norm_agree_where_squares_overflow(dtype, d, device):
    x = rl.full((3, d), 1e20, dtype=dtype, device=device)
    x[1] = 1.0
    x[2, -1] = -3e38
    calls = of_each_rung("rms_norm", device, lambda rung: rl.rms_norm(x, variant=rung))
    results = [y.to("float32") for _, y in calls]
    for result in results:
        np.testing.assert_allclose(result.cpu().numpy(), results[-1].cpu().numpy(), rtol=1e-2)
    assert abs(results[0][0, 0].item() - 1) < 1e-2


@pytest.mark.parametrize(
    "shape, dim", [((4,), 0), ((100,), 0), ((40000,), 0), ((7, 300), 0), ((300, 7), 1), ((9, 8), 0)]
)
def test_sums_that_pass_beyond_float32_and_back_are_right(shape, dim):
    large = 1.5 * 2.0**127
    assert (rl.mean(rl.full(shape, large), dim).numpy() == large).all()
    signs = np.ones(shape)
    signs.swapaxes(0, dim)[shape[dim] // 2 :] = -1
    signs.swapaxes(0, dim)[-1] = 0
    x = rl.tensor(signs * large, dtype="float32")
    for variant in ("", "v0_reference"):
        with np.errstate(over="ignore"):
            expected = (signs * large).sum(dim).astype(np.float32)
        assert np.isfinite(expected).all()
        np.testing.assert_array_equal(rl.sum(x, dim, variant=variant).numpy(), expected)
    x.transpose(0, dim)[0] = float("inf")
    assert np.isinf(rl.mean(x, dim).numpy()).all()
