"""Names, types and declarations that programs have and that look like something else."""

import numpy as np
import pytest

import rooflab as rl


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", "float var = 4, std = sqrtf(var); y[0] = std;"),
        ("", "float free = 1, clock = 1; y[0] = free + clock;"),
        ("__device__ float twice(float texture) { return 2 * texture; }", "y[0] = twice(1);"),
        ("struct A { __device__ static float two() { return 2; } };", "y[0] = A::two();"),
        ("struct A { __host__ __device__ static float of(float x) { return x; } };", "y[0] = A::of(2);"),
        ("template <int N> struct U { __device__ static int run() { return N; } };", "y[0] = U<2>::run();"),
        ("typedef long long int64_t;", "int64_t a = 2; y[0] = a;"),
        ("typedef unsigned long long uint64_t;", "uint64_t a = 1; int64_t b = a; y[0] = a + b;"),
        ("using int64_t = long long;", "int64_t a = 2; y[0] = a;"),
        ("", "int64_t a = 1; uint64_t b = 1; y[0] = a + b;"),
        ("#pragma nounroll\n", "y[0] = 2;"),
        ("", "__stcs(y, 2);"),
        ("#include <cuda_fp16.h>\n", "half a = 0, b = a++; ++a; a--; ++a; y[0] = (float)a + (float)b;"),
    ],
)  # fmt: skip
def test_names_that_mean_something_else_elsewhere(run, before, body):
    y = np.zeros(1, np.float32)
    run(f"{before}\n__global__ void f(float* y) {{ {body} }}", 1, 1, y)
    assert y[0] == 2


@pytest.mark.parametrize(
    "end", ["typedef long long int64_t", "using int64_t", "int64_t", "extern __shared__", "static"]
)
def test_a_source_that_ends_too_early_has_an_error_of_its_own(refused, end):
    assert "error" in refused("__global__ void f(float* y) { y[0] = 1; }\n" + end)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("y[0] = std::max(2.0f, 3.0f);", "the C++ standard library"),
        ("} namespace std { int a;", "the C++ standard library"),
        ("y[0] = *(float*)malloc(4);", "memory from the device's heap"),
        ("y[0] = clock64();", "a clock"),
        ("\n#define F free\nF(y);", "free"),
    ],
)
def test_what_they_mean_there_is_refused(refused, statement, what):
    assert what in refused(f"__global__ void f(float* y) {{ {statement}\n }}")


@pytest.mark.parametrize(
    ("declared", "space"),
    [
        ("__device__ const float* t", "global_loads"),
        ("__device__ float* t", "global_loads"),
        ("__device__ const float* const t = nullptr", ""),
    ],
)
def test_a_pointer_to_what_is_constant_is_a_variable(run, declared, space):
    source = f"""
    {declared};
    __global__ void f(const float* x, float* y) {{
      if (threadIdx.x == 0 && {int(bool(space))}) *(const float**)&t = x;
      __syncthreads();
      y[threadIdx.x] = t ? t[threadIdx.x] : x[threadIdx.x];
    }}"""
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    launch = run(source, 1, 32, x, y)
    assert launch.findings == [] and (y == x).all()
    assert launch.counts.shared_loads.requests == launch.counts.shared_stores.requests == 0


def test_dynamic_shared_memory_of_rows(run):
    source = """
    __global__ void f(const float* x, float* y) {
      extern __shared__ float s[][33];
      s[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
      __syncthreads();
      y[threadIdx.y * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y];
    }"""
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    y = np.zeros_like(x)
    launch = run(source, 1, (32, 32), x, y, shared_bytes=32 * 33 * 4)
    assert (y == x.T).all() and launch.findings == []
    assert launch.counts.shared_loads.wavefronts == launch.counts.shared_loads.ideal_wavefronts


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("pow(a, 2)", 9.0), ("pow(a, n)", 9.0), ("pow(2, a)", 8.0), ("pow((double)a, 2)", 9.0),
        ("pow(2.0f, -n)", 0.25), ("fmax(a, 0)", 3.0), ("fmin(1, a)", 1.0), ("fmod(a, 2)", 1.0), ("hypot(a, 4)", 5.0),
        ("atan2(a, 3)", np.pi / 4), ("fmax(2u, 1u)", 2.0), ("pow(2ll, 3ll)", 8.0), ("pow(n, 0.5f)", 2**0.5),
        ("min(3l, 2ul)", 2.0), ("max(3ll, 4ull)", 4.0),
    ],
)  # fmt: skip
def test_functions_of_two_numbers_take_numbers_of_two_types(run, expression, expected):
    y = np.zeros(1, np.float32)
    run(f"__global__ void f(float* y, float a, int n) {{ y[0] = {expression}; }}", 1, 1, y, 3.0, 2)
    assert y[0] == pytest.approx(expected, rel=1e-6)


def test_common_words_of_macros_and_pragmas_of_warnings(run):
    source = """
    #pragma nv_diag_suppress 177
    #pragma diag_default 20
    #define FIRST(a, ...) (a)
    #define CALL(f, ...) f(__VA_ARGS__)
    __global__ void f(float* y, int sinpi) { y[0] = CALL(FIRST, 3, sinpi) + (__FILE__[0] == 's'); }"""
    y = np.zeros(1, np.float32)
    assert run(source, 1, 1, y, 7).findings == [] and y[0] == 4


def test_nothing_has_to_be_written_where_there_is_nothing(build):
    kernel = build("__global__ void f(const float* x, float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = x[0]; }")
    kernel(1, 32, rl.zeros(0), rl.zeros(0), 0, mode="count")


@pytest.mark.parametrize(
    "body",
    [
        "if (isnan(x[threadIdx.x])) *y = 1;",  # what it looks for is not there
        "if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x];",
        "y[threadIdx.x] *= SCALE;",  # the compiler knows that it changes nothing
        "if (n) put(y, 2);",
        "if (n) atomicAdd(y, 1);",
        "if (n) memcpy(y, x, n);",
        "if (n) total = 1;",
        "auto set = [&](int i) { y[i] = 1; }; if (n) set(3);",
        "if (n) ((float4*)y)[0] = make_float4(1, 1, 1, 1);",
        'printf("%g", x[n]);',  # what the kernel is for, as are the next three
        "tell(n);",
        "assert(x[threadIdx.x] == 0);",
        "if (x[threadIdx.x] < 0) __trap();",
    ],
)
def test_a_kernel_that_could_write_may_write_nothing(build, body):
    before = "__device__ float total; __device__ void put(float* p, float v) { *p = v; }"
    before += '__device__ void tell(int n) { printf("%d", n); }'
    source = f"#include <assert.h>\n{before}__global__ void f(const float* x, float* y, int n) {{ {body} }}"
    launch = build(source, options=["-DSCALE=1.0f"])(1, 32, rl.zeros(32), rl.zeros(32), 0)
    assert launch.wrote_nothing and "No thread wrote to global memory." in str(launch)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "float acc = 0; for (int i = 0; i < n; ++i) acc += x[i]; acc /= n;",
        "float4 acc = make_float4(0, 0, 0, 0); float a[4]; a[n & 3] = x[n]; acc.x += a[threadIdx.x & 3];",
        "__shared__ float s[32]; s[threadIdx.x] = x[threadIdx.x];",
    ],
)
def test_a_kernel_that_writes_nothing_is_wrong(build, body):
    source = "__global__ void g(float* y) { y[0] = 1; }"
    kernel = build(f"{source}\n__global__ void f(const float* x, float* y, int n) {{ {body} }}", "f")
    with pytest.raises(rl.cuda.KernelError, match="No thread wrote"):
        kernel(1, 32, rl.zeros(32), rl.zeros(32), 4)
    kernel(1, 32, rl.zeros(32), rl.zeros(0), 4)
