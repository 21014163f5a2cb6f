"""A launch on the CPU: its arguments, modes and result, and what the rest of rooflab sees of it."""

import os
import subprocess
import sys

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import toolchain

ADD = """
__global__ void add(const float* __restrict__ a, const float *b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
extern "C" __global__ void mixed(double* out, float s, double d, unsigned u, size_t z, bool f, long long w,
                                 signed char c) {
  out[0] = s, out[1] = d, out[2] = u, out[3] = double(z), out[4] = f, out[5] = double(w), out[6] = c;
}
struct Pair { int a[2]; };
__global__ void structure(Pair pair, const void* any) {}
"""


@pytest.fixture
def module():
    return rl.cuda.compile(ADD, backend="simt")


def test_kernels_and_what_they_take_are_as_on_a_gpu(module):
    assert module.kernels == list(module) == ["add", "mixed", "structure"] and len(module) == 3
    assert repr(module) == "Module(add, mixed, structure; simt)" and module.log == ""
    assert repr(module["add"]) == "Kernel add(a (const float*), b (const float*), out (float*), n (int))"
    parameters = module["add"].parameters
    assert [p.dtype for p in parameters] == [rl.float32] * 3 + [None]
    assert [p.is_written for p in parameters[:3]] == [False, False, True]
    assert [(p.kind, p.bytes, p.is_signed) for p in module["mixed"].parameters[1:]] == [
        ("real", 4, True), ("real", 8, True), ("integer", 4, False), ("integer", 8, False), ("integer", 1, False),
        ("integer", 8, True), ("integer", 1, True),
    ]  # fmt: skip
    with pytest.raises(KeyError, match="no kernel 'sub'; the source has add, mixed"):
        module["sub"]


def test_which_backend_runs(monkeypatch):
    source = "__global__ void f(float* x) { x[0] = 1; }"
    kind = rl.cuda.Module if rl.cuda.is_available() else rl.cuda.SimtModule
    assert isinstance(rl.cuda.compile(source), kind)
    with pytest.raises(ValueError, match="backend: expected auto, gpu or simt, got 'cpu'"):
        rl.cuda.compile(source, backend="cpu")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(toolchain, "_identity", toolchain._identity.__wrapped__)
    toolchain.compiler.cache_clear()
    try:
        with pytest.raises(
            rl.CudaError, match=r"needs g\+\+: on a cluster module load gcc, .*; backend='gpu' compiles"
        ):
            rl.cuda.compile(source, backend="simt")
    finally:
        toolchain.compiler.cache_clear()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo Apple clang version 15.0.0", r"needs GNU's g\+\+, and .*g\+\+ is clang: on a cluster module load gcc"),
        ('for word; do shift; case $word in -fdump*);; *) set -- "$@" "$word";; esac; done; exec REAL "$@"',
         r"needs what -fdump-tree-optimized writes, and .*g\+\+ writes nothing"),
        ('case $1 in -print-file-name=libstdc++.a) echo libstdc++.a;; *) exec REAL "$@";; esac',
         r"needs libstdc\+\+\.a, which .*g\+\+ lacks: .* have one run .*dnf install gcc-c\+\+ libstdc\+\+-static"),
    ],
)  # fmt: skip
def test_a_compiler_that_the_checks_cannot_use(monkeypatch, tmp_path, script, says):
    """A source is not to blame for it."""
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\n" + script.replace("REAL", toolchain.compiler()), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(toolchain, "_identity", toolchain._identity.__wrapped__)
    toolchain.compiler.cache_clear()
    try:
        with pytest.raises(rl.CudaError, match=says):
            rl.cuda.compile("__global__ void f(float* x) { x[0] = 1; }", backend="simt")
    finally:
        toolchain.compiler.cache_clear()


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_arrays_and_tensors_in_and_out(module, numbers, kind):
    a, b = numbers(2, 1000)
    out = np.zeros(1000, np.float32)
    if kind == "tensor":
        a, b, out = rl.tensor(a), rl.tensor(b), rl.tensor(out)
    module["add"](4, 256, a, b, out, 1000)
    assert np.array_equal(np.asarray(out), np.asarray(a) + np.asarray(b))
    module["add"](1, 32, out[5:], b, out[5:], 16)  # one memory in two arguments, by views
    assert np.allclose(np.asarray(out)[5:21], np.asarray(a)[5:21] + np.asarray(b)[5:21] + np.asarray(b)[:16])


def test_views_with_strides_and_empty_arrays(build):
    source = "__global__ void f(const float* x, float* y, int n) { for (int i = 0; i < n; ++i) y[i] = x[2 * i]; }"
    x, y = np.arange(20, dtype=np.float32), np.zeros(10, np.float32)
    build(source)(1, 1, x[::2], y, 10)
    assert y.tolist() == list(range(0, 20, 2))
    with pytest.raises(rl.cuda.KernelError, match=r"reads 4 bytes at x\[0\], which has 0 elements"):
        build(source)(1, 1, x[:0], y, 1)
    with pytest.raises(rl.cuda.KernelError, match=r"reads 4 bytes at x\[-1\], which has 19 elements"):
        build(source.replace("2 * i", "i - 1"))(1, 1, x[1:], y, 1)
    with pytest.raises(ValueError, match="strides are negative"):
        build(source)(1, 1, x[::-1], y, 10)
    y.flags.writeable = False
    with pytest.raises(ValueError, match=r"y \(float\*\): expected an array that can be written"):
        build(source)(1, 1, x, y, 10)
    build(source.replace("y[i] = x", "(void)x"))(1, 1, y, x, 10, mode="functional")  # reading is no matter


def test_numbers_arrive(module):
    out = np.zeros(7)
    sent = [0.1, 0.1, (1 << 32) - 1, (1 << 53) - 1, True, -(1 << 52), -128]
    module["mixed"](1, 1, out, *sent)
    assert out.tolist() == [float(np.float32(0.1)), *map(float, sent[1:])]
    module["mixed"](1, 1, out, np.float32(2), 3, np.int64(4), np.uint8(5), False, 6, 7)
    assert out.tolist() == [2, 3, 4, 5, 0, 6, 7]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b": rl.ones(4, dtype="float16")}, r"b \(const float\*\): expected a float32 tensor, got float16"),
        ({"out": np.ones(4, np.int32)}, r"out \(float\*\): expected a float32 array, got int32"),
        ({"a": 3}, r"a \(const float\*\): expected a tensor or a NumPy array, got int 3"),
        ({"n": 4.0}, r"n \(int\): expected an integer, got float 4.0"),
        ({"n": rl.ones(1)}, r"n \(int\): expected an integer, got"),
        ({"n": None}, r"n \(int\): expected an integer, got NoneType"),
        ({"n": 1 << 31}, r"n \(int\): 2147483648 does not fit into 32 bits"),
        ({"extra": 5}, r"expected 4 arguments \(a \(const float\*\), .*\), got 5"),
        ({"grid": 0}, "grid: expected one to three integers >= 1, got 0"),
        ({"grid": (1, 2, 3, 4)}, "grid: expected one to three"),
        ({"block": (32, -1)}, r"block: expected one to three integers >= 1, got \(32, -1\)"),
        ({"block": 2.5}, "block: expected one to three"),
        ({"block": 1025}, "block: 1025 x 1 x 1 threads, where a block has at most 1024"),
        ({"shared_bytes": -1}, "shared_bytes: expected >= 0"),
        ({"mode": "fast"}, "mode: expected one of functional, check, count, got 'fast'"),
        ({"schedule": "random"}, "schedule: expected one of in order, reversed, seeded"),
        ({"blocks": 0}, "blocks: expected >= 1"),
        ({"seconds": 0}, "seconds: expected a number > 0, got 0"),
        ({"seconds": "5"}, "seconds: expected a number > 0, got '5'"),
        ({"cost": 3}, r"cost: expected rl.Cost\(...\) or None, got 3"),
        ({"a": [1.0] * 99}, r"a NumPy array, got list \[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ...\]$"),
        ({"n": np.float32(4)}, r"n \(int\): expected an integer, got numpy.float32 .*; int\(...\) makes it one"),
        ({"n": np.array(4)}, r"n \(int\): expected an integer, got numpy.ndarray array\(4\); .item\(\) gives it"),
        ({"a": np.ma.masked_array(np.ones(4, np.float32), [1, 0, 0, 0])}, "a kernel sees no mask; pass .filled"),
        (
            {"out": np.broadcast_to(np.float32(1), 4)},
            "this one cannot; pass a copy, or let the parameter point to const",
        ),
        ({"shared_bytes": 1.5}, "shared_bytes: expected an integer, got 1.5"),
        ({"blocks": "2"}, "blocks: expected an integer, got '2'"),
        ({"seed": 0.5}, "seed: expected an integer, got 0.5"),
    ],
)
def test_wrong_arguments(module, changes, message):
    x = rl.ones(4)
    given = {"grid": 1, "block": 1, "a": x, "b": x, "out": x, "n": 4} | changes
    options = {
        name: given.pop(name)
        for name in ("shared_bytes", "mode", "schedule", "blocks", "seconds", "seed", "cost")
        if name in given
    }
    with rl.count() as counted, pytest.raises(ValueError, match=message):
        module["add"](given.pop("grid"), given.pop("block"), *given.values(), **options)
    assert "custom" not in counted.by_op


def test_a_bool_is_true_or_false_and_a_real_number_has_a_size(module):
    out = np.zeros(7)
    module["mixed"](1, 1, out, 1, 1, 1, 1, np.True_, 1, 1)
    assert out[4] == 1
    with pytest.raises(ValueError, match=r"f \(bool\): 2 does not fit into a bool"):
        module["mixed"](1, 1, out, 1, 1, 1, 1, 2, 1, 1)
    with pytest.raises(ValueError, match=r"d \(double\): a number of this size does not fit"):
        module["mixed"](1, 1, out, 1, 10**400, 1, 1, True, 1, 1)


def test_structures_are_refused(module):
    with pytest.raises(
        ValueError, match=r"pair \(Pair\): a kernel's parameters can be pointers and numbers, not Pair; take its"
    ):
        module["structure"](1, 1, 3, None)


def test_an_array_of_objects_is_refused():
    with pytest.raises(
        ValueError, match=r"any \(const void\*\): expected an array of numbers, got one of Python's objects"
    ):
        rl.cuda.compile("__global__ void f(const void* any) {}", backend="simt")["f"](1, 1, np.array([None]))


def test_counters_and_profiles_see_a_launch(module):
    x, y = rl.ones(4), rl.zeros(4)
    cost = rl.Cost(flops=4, bytes_read=32, bytes_written=16)
    with rl.profile() as prof, rl.count() as counted, rl.range("mine"):
        module["add"](1, 4, x, x, y, 4)
        module["add"](1, 4, x, x, y, 4, cost=cost)
    assert (counted.ops, counted.launches, counted.flops, counted.bytes_read) == (2, 2, 4, 32)
    assert counted.by_op["custom"].launches == counted.by_range["mine"].launches == 2
    assert [(kernel.op, kernel.kernel, kernel.range) for kernel in prof.kernels] == [("custom", "add", "mine")] * 2
    assert prof.kernels[1].cost == cost and all(kernel.is_interpreted for kernel in prof.kernels)


def test_a_tensor_that_a_kernel_writes_is_known_to_autograd(module):
    w, x = rl.ones(4, requires_grad=True), rl.ones(4)
    y = w * x
    with pytest.raises(ValueError, match="requires grad"):
        module["add"](1, 4, x, x, w, 4)
    module["add"](1, 4, x, x, x, 4)
    with pytest.raises(ValueError, match="saved for backward was changed in place"):
        y.sum().backward()


@pytest.mark.parametrize("mode", ["functional", "check", "count"])
def test_modes(module, mode):
    a, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    launch = module["add"](2, 32, a, a, out, 64, mode=mode)
    assert out.tolist() == [2.0] * 64 and launch.findings == [] and launch.source == "simt"
    assert (launch.counts.global_loads.requests, launch.blocks) == {"functional": (0, 0), "check": (0, 2)}.get(
        mode, (4, 2)
    )
    assert bool(launch.lines) == (mode == "count")


def test_some_blocks_are_counted_and_all_are_run_and_checked(module):
    a, out = np.ones(320, np.float32), np.zeros(320, np.float32)
    launch = module["add"](10, 32, a, a, out, 320, mode="count", blocks=3)
    assert out.tolist() == [2.0] * 320
    assert (launch.blocks, launch.counts.global_loads.requests) == (3, 6)
    assert "Of 3 of 10 blocks." in str(launch)
    assert module["add"](10, 32, a, a, out, 320, mode="count", blocks=99).counts.global_loads.requests == 20
    with pytest.raises(rl.cuda.KernelError, match=r"Thread 31 of block 9 reads 4 bytes at a\[319\]"):
        module["add"](10, 32, a[:319].copy(), a, out, 320, mode="count", blocks=1)


def test_orders_of_blocks_and_threads(build):
    source = """
    __device__ int next;
    __global__ void f(int* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(&next, 1); }"""
    found = {}
    for schedule, seed in (("in order", 0), ("reversed", 0), ("seeded", 1), ("seeded", 2)):
        y = np.zeros(4 * 40, np.int32)
        build(source)(4, 40, y, schedule=schedule, seed=seed, mode="functional")
        assert sorted(y.tolist()) == list(range(160))
        again = np.zeros_like(y)
        build(source)(4, 40, again, schedule=schedule, seed=seed)
        assert np.array_equal(y, again)
        found[schedule, seed] = y.tolist()
    assert found["in order", 0] == list(range(160)) and found["reversed", 0] == list(range(159, -1, -1))
    assert found["seeded", 1] != found["seeded", 2] and found["seeded", 1] not in (
        found["in order", 0],
        found["reversed", 0],
    )


def test_an_error_holds_the_result_and_what_was_written_stays(module):
    a, out = np.ones(64, np.float32), np.zeros(40, np.float32)
    with pytest.raises(
        rl.cuda.KernelError, match=r"^\[add\] line 4: Thread 8 of block 1 writes 4 bytes at out\[40\]"
    ) as error:
        module["add"](2, 32, a, a, out, 64)
    assert error.value.findings == error.value.launch.findings and out.tolist() == [2.0] * 40
    assert isinstance(error.value, RuntimeError) and error.value.findings[0].thread == (8, 0, 0)


def test_results_as_text_and_html(build):
    source = "__global__ void f(const float* x, float* y) {\n  // a < b\n  y[threadIdx.x] = 2 * x[threadIdx.x];\n}\n"
    x, y = np.ones(32, np.float32), np.zeros(32, np.float32)
    launch = build(source)(1, 32, x, y, mode="count")
    text = str(launch)
    assert text.startswith("f: 1 blocks of 32 threads, mode count\n")
    assert "global loads: sectors per request" in text and "4.00" in text and "100.0%" in text
    assert "there is no time among them" in text and " ms" not in text and "second" not in text
    lines = launch.listing().splitlines()
    assert (
        len(lines) == 4
        and lines[1] == "   2    // a < b"
        and "global loads: requests 1" in lines[2]
        and "flops 32" in lines[2]
    )
    page = launch._repr_html_()
    assert "a &lt; b" in page and page.count("<tr>") >= 4 + len(launch.counts.rows())
    with pytest.raises(rl.cuda.KernelError) as error:
        build(source)(1, 32, x[:4], y)
    assert "Thread 4 of block 0 reads" in error.value.launch._repr_html_()
    assert "<- Thread 4" in error.value.launch.listing()


def test_a_known_source_is_not_built_again(module, monkeypatch):
    def never(*args, **options):
        raise AssertionError("it was built again")

    assert toolchain.programs()
    monkeypatch.setattr(toolchain, "_run", never)
    again = rl.cuda.compile(ADD, backend="simt")
    out = np.zeros(7)
    again["mixed"](1, 1, out, 1, 2, 3, 4, True, 6, 7)
    assert out.tolist() == [1, 2, 3, 4, 1, 6, 7]
    with pytest.raises(AssertionError, match="built again"):
        rl.cuda.compile(ADD + "//", ["-DA=1"], backend="simt")


@pytest.mark.slow
def test_two_processes_build_into_an_empty_cache(tmp_path):
    code = """
import numpy as np, rooflab as rl
y = np.zeros(4, np.int32)
rl.cuda.compile("__global__ void f(int* y) { y[threadIdx.x] = threadIdx.x; }", backend="simt")["f"](1, 4, y)
print(y.tolist())
"""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment) for _ in range(2)
    ]
    assert [process.communicate()[0] for process in started] == [b"[0, 1, 2, 3]\n"] * 2
    names = [path.name for path in (tmp_path / "rooflab" / "simt").iterdir()]
    assert len(names) == 4 and not [name for name in names if "part" in name]


def test_a_grid_that_no_gpu_takes(module):
    with pytest.raises(ValueError, match=r"\[add\] grid: 1 x 65536 x 1 blocks, where a grid has at most 65535 in y"):
        module["add"]((1, 65536), 32, *[np.zeros(1, np.float32)] * 3, 1)


def test_arguments_in_a_tuple_and_seconds_of_numpy(module):
    x = np.ones(4, np.float32)
    with pytest.raises(ValueError, match=r"expected 4 arguments \(.*\), got a tuple of them"):
        module["add"](1, 4, (x, x, x, 4))
    module["add"](1, 4, x, x, x, 4, seconds=np.float32(9))
    assert x.tolist() == [2] * 4


BOUNDS = """#define MOST 16
namespace inner {
template <int N, class T = float> __global__ void __launch_bounds__(N * 2, 1) fill(T* y) { y[threadIdx.x] = N; }
template __global__ void fill<8>(float*);
template __global__ void fill<16, int>(int*);
template <> __global__ void __launch_bounds__(4) fill<3>(float* y) { y[0] = 3; }
}
__global__ __launch_bounds__(MOST /* threads */ // a block
) void behind(float* y) { y[threadIdx.x] = __LINE__; }
__global__ void __launch_bounds__(2 * sizeof(float)) declared(float* y);
__global__ void declared(float* y) { y[threadIdx.x] = __LINE__; }
#if MOST > 16
__global__ void __launch_bounds__(32) chosen(float* y) { y[threadIdx.x] = 1; }
#else
extern "C" __global__ void __launch_bounds__(64) chosen(float* y) { y[threadIdx.x] = 1; }
#endif
__global__ void any(float* y) { y[threadIdx.x] = 1; }
"""


def test_launch_bounds_are_the_most_threads_of_a_block():
    """A GPU refuses such a launch too."""
    module = rl.cuda.compile(BOUNDS, backend="simt")
    most = {"inner::fill<8>": 16, "inner::fill<16, int>": 32, "inner::fill<3>": 4, "behind": 16, "declared": 8,
            "chosen": 64, "any": 1024}  # fmt: skip
    assert module.kernels == list(most) and module.log == ""
    for name, threads in most.items():
        y = np.zeros(1024, np.int32 if "int" in name else np.float32)
        module[name](1, (threads // 2, 2), y)
        assert y[0] == {"inner::fill<8>": 8, "inner::fill<16, int>": 16, "inner::fill<3>": 3, "behind": 9,
                        "declared": 11}.get(name, 1)  # fmt: skip
        if threads < 1024:
            says = rf"block: {threads + 1} x 1 x 1 threads, where its __launch_bounds__ allow {threads}"
            with pytest.raises(ValueError, match=says):
                module[name](1, threads + 1, y)


def test_an_expanded_tensor_is_written_as_its_memory_is():
    kernel = rl.cuda.compile("__global__ void f(float* x) { x[threadIdx.x] = 5.f; }", backend="simt")["f"]
    x = rl.zeros(3).expand(2, 3)
    kernel(1, 3, x)
    assert x.tolist() == [[5.0] * 3] * 2


def test_a_structure_of_any_size_spoils_no_other_kernel():
    for size in (16, 17, 31, 64, 128, 159, 200):
        source = f"struct S {{ char of[{size}]; }}; __global__ void b(S s, float* y, int n) {{ y[0] = s.of[0]; }}"
        module, y = (
            rl.cuda.compile(source + "__global__ void a(float* y) { y[0] = 1; }", backend="simt"),
            np.zeros(1, np.float32),
        )
        module["a"](1, 1, y)
        assert y[0] == 1
        with pytest.raises(ValueError, match=r"expected 3 arguments \(s \(S\), y \(float\*\), n \(int\)\), got 1"):
            module["b"](1, 1, y)
