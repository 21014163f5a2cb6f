"""CUDA C++ at run time: what compiles, what the errors say, what a launch takes, counts and refuses."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rooflab as rl

# --- compiling: no GPU is needed ---


def test_kernels_by_name_with_what_they_take(module):
    assert module.kernels == list(module) == ["add", "mixed", "fill<64>", "reverse", "where", "structure"]
    assert repr(module["add"]) == "Kernel add(a (const float*), b (const float*), out (float*), n (int))"
    assert [p.dtype for p in module["add"].parameters] == [rl.float32] * 3 + [None]
    mixed = module["mixed"].parameters
    assert [(p.kind, p.bytes, p.is_signed) for p in mixed[1:]] == [
        ("real", 4, True), ("real", 8, True), ("integer", 4, False), ("integer", 8, False), ("integer", 1, False),
        ("integer", 8, True), ("integer", 1, True),
    ]  # fmt: skip
    assert [p.label for p in mixed][:4] == ["out (double*)", "s (float)", "d (double)", "u (unsigned)"]
    assert module["fill<64>"].parameters[0].label == "x (float*)"
    assert module.log == "" and len(module) == 6
    with pytest.raises(KeyError, match="no kernel 'sub'; the source has add, mixed"):
        module["sub"]


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("\n\n__global__ void f(float* x) {\n  x[0] = y;\n}", 4, 'identifier "y" is undefined'),
        ("__global__ void f(float* x) { x[0] = 1 }", 1, 'expected a ";"'),
        ("\nvoid g() {}\n__global__ void f() { g(); }", 2, "without execution space annotations"),
        ("__global__ int f() { return 1; }", 1, "void return type"),
        ("// line 1\n#error here\n", 2, "here"),
        ("// größer\n__global__ void f() { größer; }", 2, "undefined"),
    ],
)
def test_errors_bear_the_lines_of_the_source(module, body, line, says):
    with pytest.raises(rl.cuda.CompileError) as error:
        rl.cuda.compile(body, backend="gpu")
    assert f"source({line}): " in str(error.value) and says in str(error.value)
    assert error.value.log and error.value.log in str(error.value) and isinstance(error.value, RuntimeError)


def test_too_much_static_shared_memory_is_an_error_of_the_source(module):
    with pytest.raises(rl.cuda.CompileError, match="too much shared data"):
        rl.cuda.compile(
            "__global__ void f(float* x) { __shared__ float t[1 << 16]; x[0] = t[threadIdx.x]; }", backend="gpu"
        )


def test_options(module):
    with pytest.raises(rl.cuda.CompileError, match='"TILE" is undefined'):
        rl.cuda.compile("__global__ void f(int* x) { x[0] = TILE; }", backend="gpu")
    made = rl.cuda.compile(
        "__global__ void f(int* x) { x[0] = TILE; }", ["-DTILE=64", "--gpu-architecture=sm_90a"], backend="gpu"
    )
    assert made.architecture == "sm_90a" and repr(made) == "Module(f; sm_90a)"
    with pytest.raises(ValueError, match=r"options: .*unrecognized option --nonsense"):
        rl.cuda.compile("__global__ void f() {}", ["--nonsense"], backend="gpu")


def test_what_no_compiler_can_be_given_is_refused():
    for wrong in ("-DTILE=64", None, 3, [3], ["-DA=\0"], ["-DA=\udcff"]):
        with pytest.raises(ValueError, match="options: expected a sequence"):
            rl.cuda.compile("__global__ void f() {}", wrong)
    surrogate = ("__global__ void f() {} // \udcff", "characters that UTF-8 cannot hold")
    for wrong, got in ((None, "NoneType"), (b"", "bytes"), ("__global__ void f() {}\0", "a NUL in it"), surrogate):
        with pytest.raises(ValueError, match=f"source: expected CUDA .*{got}"):
            rl.cuda.compile(wrong)


def test_warnings_are_kept_and_a_source_without_kernel_is_refused(module):
    assert 'variable "unused"' in rl.cuda.compile("__global__ void f() { int unused; }", backend="gpu").log
    with pytest.raises(rl.cuda.CompileError, match="no kernel: expected a function"):
        rl.cuda.compile("__device__ int f() { return 1; }", backend="gpu")


def test_overloads_go_by_their_signature(module):
    made = rl.cuda.compile("__global__ void f(float* x) {}\n__global__ void f(int* x, unsigned n) {}", backend="gpu")
    assert made.kernels == ["f(float*)", "f(int*, unsigned int)"]
    assert [p.dtype for kernel in made for p in made[kernel].parameters] == [rl.float32, rl.int32, None]


def test_parameters_that_the_source_does_not_spell_out(module):
    made = rl.cuda.compile(
        """
#define ARGUMENTS const float* a, const int n
namespace inner { __global__ void f(ARGUMENTS) {} }
__global__ void g(const float* = nullptr, const int = 3, float4* v = nullptr);
__global__ void g(const float*, const int, float4*) {}
using Rows = float*;
extern "C" __global__ void h(Rows rows, unsigned long long n) {}
""",
        backend="gpu",
    )
    assert [p.label for p in made["inner::f"].parameters] == ["argument 1 (float const*)", "argument 2 (int)"]
    assert [p.label for p in made["g"].parameters] == [
        "argument 1 (const float*)", "argument 2 (const int)", "argument 3 (float4*)",
    ]  # fmt: skip
    assert [p.dtype for p in made["g"].parameters] == [rl.float32, None, rl.float32]
    assert [p.kind for p in made["h"].parameters] == ["any", "integer"]


def test_half_types_need_headers(module):
    source = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__global__ void f(const __half* a, const half2* b, __nv_bfloat16* c, __nv_bfloat162* d) {
  c[0] = __float2bfloat16(__half2float(a[0]));
}"""
    try:
        made = rl.cuda.compile(source, backend="gpu")
    except rl.cuda.CompileError as error:
        assert "pip install nvidia-cuda-runtime" in str(error)
        pytest.skip("no CUDA headers here")
    assert [p.dtype for p in made["f"].parameters] == [rl.float16] * 2 + [rl.bfloat16] * 2


def test_a_missing_nvrtc_is_one_sentence(tmp_path):
    """Another library with that name stands in for a missing one."""
    other = next(
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
        if "libm.so" in line
    )
    (tmp_path / "libnvrtc.so.13").symlink_to(other)
    code = f"""
import rooflab as rl
rl._core.add_library_directory({str(tmp_path)!r})
try:
    rl.cuda.compile("__global__ void f() {{}}", backend="gpu")
except rl.CudaError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.stdout.count("\n") == 1, done.stderr
    assert done.stdout.startswith("NVRTC has no nvrtc") and "pip install nvidia-cuda-nvrtc" in done.stdout


# --- arguments: checked before anything is launched ---


def call_add(module, device, grid=1, block=1, shared_bytes=0, **changes):
    x = rl.ones(4, device=device)
    module["add"](grid, block, *({"a": x, "b": x, "out": x, "n": 4} | changes).values(), shared_bytes=shared_bytes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": rl.ones(4, dtype="float16")}, r"b \(const float\*\): expected a float32 tensor, got float16"),
        ({"out": rl.ones(4, dtype="int32")}, r"out \(float\*\): expected a float32 tensor, got int32"),
        ({"a": 3}, r"a \(const float\*\): expected a tensor, got int 3"),
        ({"a": np.ones(4, np.float32)}, r"a \(const float\*\): expected a tensor, got numpy.ndarray"),
        ({"n": 4.0}, r"n \(int\): expected an integer, got float 4.0"),
        ({"n": rl.ones(1)}, r"n \(int\): expected an integer, got"),
        ({"n": None}, r"n \(int\): expected an integer, got NoneType"),
        ({"n": 1 << 31}, r"n \(int\): 2147483648 does not fit into 32 bits"),
        ({"n": -(1 << 31) - 1}, "does not fit into 32 bits"),
        ({"n": 1 << 70}, "does not fit into 32 bits"),
        ({"extra": 5}, r"expected 4 arguments \(a \(const float\*\), .*\), got 5"),
        ({"grid": 0}, "grid: expected one to three integers >= 1, got 0"),
        ({"grid": (1, 2, 3, 4)}, "grid: expected one to three"),
        ({"grid": "many"}, "grid: expected one to three"),
        ({"block": (32, -1)}, r"block: expected one to three integers >= 1, got \(32, -1\)"),
        ({"block": 2.5}, "block: expected one to three"),
        ({"shared_bytes": -1}, "shared_bytes: expected >= 0"),
    ],
)
def test_wrong_arguments(module, device, changes, message):
    with pytest.raises(ValueError, match=message):
        call_add(module, device, **changes)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (3, -1, r"u \(unsigned\): -1 does not fit into 32 unsigned bits"),
        (3, 1 << 32, "does not fit into 32 unsigned bits"),
        (4, 1 << 64, "does not fit into 64 unsigned bits"),
        (4, -1, "does not fit into 64 unsigned bits"),
        (5, 256, r"f \(bool\): 256 does not fit"),
        (6, 1 << 63, "does not fit into 64 bits"),
        (7, 128, "does not fit into 8 bits"),
        (1, "1", r"s \(float\): expected a number, got str '1'"),
    ],
)
def test_numbers_must_fit(module, device, place, value, message):
    arguments = [None, 1.0, 1.0, 1, 1, True, 1, 1]
    arguments[place] = value
    with pytest.raises(ValueError, match=message):
        module["mixed"](1, 1, *arguments)
    with pytest.raises(ValueError, match=r"pair \(Pair\): a kernel's parameters can be pointers and numbers, not Pair"):
        module["structure"](1, 1, 3, None)


@pytest.mark.skipif(rl.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_a_launch_is_refused_in_one_sentence(module):
    with rl.count() as counted, pytest.raises(rl.CudaError, match=r"^\[add\] cannot launch: no CUDA device.*[^.]$"):
        call_add(module, "cpu")
    assert "custom" not in counted.by_op and module.architecture == "sm_80"


# --- launching ---


@pytest.mark.gpu
def test_vector_addition(module):
    n = 100_003
    a, b = rl.randn(n, device="cuda"), rl.randn(n, device="cuda")
    out = rl.zeros(n, device="cuda")
    module["add"]((n + 255) // 256, 256, a, b, out, n)
    assert np.array_equal(out.cpu().numpy(), a.cpu().numpy() + b.cpu().numpy())
    module["add"](1, 32, a[7:], b, out, 16)  # a view begins where it begins
    assert np.array_equal(out.cpu().numpy()[:16], a.cpu().numpy()[7:23] + b.cpu().numpy()[:16])
    with pytest.raises(ValueError, match=r"b \(const float\*\): expected a tensor on a GPU, got one on the CPU"):
        module["add"](1, 1, a, b.cpu(), out, 1)


@pytest.mark.gpu
def test_numbers_arrive(module):
    out = rl.zeros(7, dtype="float64", device="cuda")
    sent = [0.1, 0.1, (1 << 32) - 1, (1 << 53) - 1, True, -(1 << 52), -128]
    module["mixed"](1, 1, out, *sent)
    assert out.tolist() == [float(np.float32(0.1)), *map(float, sent[1:])]
    module["mixed"](1, 1, out, np.float32(2), 3, np.int64(4), np.uint8(5), False, 6, 7)
    assert out.tolist() == [2, 3, 4, 5, 0, 6, 7]


@pytest.mark.gpu
def test_grids_of_three_dimensions_and_templates(module):
    out = rl.zeros(2, 6, 8, dtype="int32", device="cuda")
    module["where"]((2, 3, 2), (4, 2), out, 8)
    z, y, x = np.indices((2, 6, 8))
    assert np.array_equal(out.cpu().numpy(), 100 * z + 10 * y + x)
    row = rl.zeros(5, device="cuda")
    module["fill<64>"](1, 3, row)
    assert row.tolist() == [64, 64, 64, 0, 0]


@pytest.mark.gpu
@pytest.mark.parametrize("shared_bytes", [4 * 1024, 100_000, rl.cuda.properties().shared_memory_per_block_optin
                                          if rl.cuda.is_available() else 0])  # fmt: skip
def test_dynamic_shared_memory_beyond_48_kb(module, shared_bytes):
    x = rl.arange(1024, device="cuda").to("int32")
    y = rl.zeros(1024, dtype="int32", device="cuda")
    module["reverse"](1, 1024, x, y, shared_bytes=shared_bytes)
    assert np.array_equal(y.cpu().numpy(), x.cpu().numpy()[::-1])


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block": 1025}, "a block of 1025 x 1 x 1 threads, where at most 1024 x 1024 x 64"),
        (
            {"block": (64, 32)},
            r"2048 threads a block, where this kernel, with \d+ registers a thread, can have",
        ),
        ({"block": (1, 1, 65)}, "a block of 1 x 1 x 65"),
        ({"grid": (1, 65536)}, "a grid of 1 x 65536 x 1 blocks"),
        ({"grid": 1 << 31}, "a grid of 2147483648"),
        ({"shared_bytes": 1 << 20}, "1048576 bytes of dynamic and 0 of static shared memory a block, where this GPU"),
    ],
)
def test_shapes_that_the_gpu_cannot_run(module, changes, message):
    with rl.count() as counted, pytest.raises(rl.CudaError, match=r"^\[add\] cannot launch: " + message):
        call_add(module, "cuda", **changes)
    assert "custom" not in counted.by_op
    call_add(module, "cuda")  # and the next launch still works


@pytest.mark.gpu
def test_registers_bound_the_block(module):
    source = "__global__ void __launch_bounds__(128) f(float* x) { x[threadIdx.x] = 1; }"
    with pytest.raises(rl.CudaError, match=r"256 threads a block, .* at most 128"):
        rl.cuda.compile(source, backend="gpu")["f"](1, 256, rl.zeros(256, device="cuda"))


@pytest.mark.gpu
def test_a_launch_is_counted_and_profiled(module):
    cost = rl.Cost(flops=4, bytes_read=32, bytes_written=16)
    call_add(module, "cuda")
    x = rl.ones(4, device="cuda")
    with rl.profile() as prof, rl.count() as counted, rl.range("mine"):
        module["add"](1, 4, x, x, x, 4)
        module["add"](1, 4, x, x, x, 4, cost=cost)
    assert (counted.launches, counted.flops, counted.bytes_read) == (2, 4, 32)
    assert counted.by_op["custom"].launches == counted.by_range["mine"].launches == 2
    assert [(kernel.op, kernel.kernel, kernel.range) for kernel in prof.kernels] == [("custom", "add", "mine")] * 2
    assert all(kernel.name.startswith("add") for kernel in prof.kernels)
    if prof.source == "cupti":
        assert prof.kernels[0].block == (4, 1, 1)
    assert prof.kernels[1].cost == cost


@pytest.mark.gpu
def test_launches_follow_the_current_stream(module):
    n = 1 << 22
    x, out = rl.ones(n, device="cuda"), rl.zeros(n, device="cuda")
    rl.synchronize()
    stream = rl.cuda.Stream()
    with stream:
        for _ in range(20):
            module["add"](n // 256, 256, out, x, out, n)
        total = out.sum()
    stream.synchronize()
    assert total.item() == 20 * n


@pytest.mark.gpu
def test_modules_come_and_go():
    x = rl.zeros(4, device="cuda")
    for value in range(5):
        rl.cuda.compile(f"__global__ void f(float* x) {{ x[threadIdx.x] = {value}; }}")["f"](1, 4, x)
        assert x.tolist() == [value] * 4


@pytest.mark.gpu
def test_an_illegal_address_costs_the_process_its_context():
    code = """
import rooflab as rl
module = rl.cuda.compile("__global__ void f(float* x) { x[1ll << 40] = 1; }", backend="gpu")
x = rl.ones(4, device="cuda")
module["f"](1, 1, x)
for _ in range(2):
    try:
        rl.synchronize()
    except rl.CudaError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert "illegal memory access" in line and "lost its CUDA context" in line
    assert done.stdout.count("\n") == 2
