"""Which arrays a kernel's pointers take, on a GPU and on the CPU."""

import numpy as np
import pytest

import rooflab as rl

SOURCE = """
typedef unsigned mine;
extern "C" __global__ void f(unsigned* u, const unsigned long long* l, volatile float* v, unsigned char* c,
                             const short* s, uint4* u4, int2* i2, const float2* f2, bool* b, void* any, mine* typed) {
  if (u) u[0] = 1;
}
"""
TAKEN = {"u": ("int32",), "l": ("int64",), "v": ("float32",), "c": ("bool",), "s": ("float16", "bfloat16"),
         "u4": ("int32",), "i2": ("int32",), "f2": ("float32",), "b": ("bool",)}  # fmt: skip
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "bool")


@pytest.fixture(scope="module", params=["simt", pytest.param("gpu", id="nvrtc")])
def kernel(request):
    try:
        return rl.cuda.compile(SOURCE, backend=request.param)["f"]
    except rl.CudaError as missing:
        pytest.skip(str(missing))


def launch(kernel, **given):
    device = "cuda" if rl.cuda.is_available() and not isinstance(kernel, rl.cuda.SimtKernel) else "cpu"
    given = {"u": rl.zeros(4, dtype="int32")} | given
    values = [given.get(parameter.label.partition(" ")[0]) for parameter in kernel.parameters]
    try:
        kernel(1, 1, *(value.to(device) if isinstance(value, rl.Tensor) else value for value in values))
    except rl.CudaError as error:
        assert "cannot launch: no CUDA device" in str(error)


@pytest.mark.parametrize("name", TAKEN)
def test_a_pointer_takes_elements_of_its_type(kernel, name):
    for dtype in DTYPES:
        given = {name: rl.zeros(16, dtype=dtype)}
        if dtype in TAKEN[name]:
            launch(kernel, **given)
            continue
        says = rf"^\[f\] {name} \(.*\*\): expected a {' or '.join(TAKEN[name])} tensor, got {dtype}$"
        with pytest.raises(ValueError, match=says):
            launch(kernel, **given)


def test_a_pointer_to_void_takes_any(kernel):
    for dtype in DTYPES:
        launch(kernel, any=rl.zeros(4, dtype=dtype))


@pytest.mark.parametrize(
    ("name", "dtypes", "wrong", "says"),
    [
        ("u", ("uint32", "int32"), "float32", r"u \(unsigned\*\): expected a uint32 or int32 array, got float32"),
        ("u4", ("uint32", "int32"), "uint8", r"u4 \(uint4\*\): expected a uint32 or int32 array, got uint8"),
        ("l", ("uint64", "int64"), "uint32", "expected a uint64 or int64 array, got uint32"),
        ("c", ("uint8", "int8", "bool"), "int32", "expected a uint8 or int8 or bool array, got int32"),
        (
            "s",
            ("int16", "uint16", "float16"),
            "float32",
            "expected a uint16 or int16 or float16 or bfloat16 array, got",
        ),
        ("typed", ("uint32",), "float32", r"typed \(mine\*\): expected a uint32 or int32 array, got float32"),
        ("i2", ("int32",), "uint32", "expected a int32 array, got uint32"),
        ("v", ("float32",), ">f4", "expected a float32 array, got >f4"),
    ],
)
def test_arrays_of_numpy(name, dtypes, wrong, says):
    kernel = rl.cuda.compile(SOURCE, backend="simt")["f"]
    for dtype in dtypes:
        launch(kernel, **{name: np.zeros(8, dtype)})
    with pytest.raises(ValueError, match=says):
        launch(kernel, **{name: np.zeros(8, wrong)})
