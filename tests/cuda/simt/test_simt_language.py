"""The C++ that kernels are written in, and where a line-by-line translation would go wrong."""

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import toolchain


def test_templates_and_namespaces(build):
    source = """
    namespace inner {
    template <class T, int N> struct Box { T v[N]; __device__ T last() const { return v[N - 1]; } };
    template <int D, class T> __device__ T scaled(T x) { return D * x; }
    template <class T, int D>
    __global__ void fill(T* x, T value) { Box<T, 2> box = {{value, scaled<D>(value)}}; x[threadIdx.x] = box.last(); }
    template __global__ void fill<float, 3>(float*, float);
    template __global__ void fill<int,4>(int*, int);
    }
    extern "C" __global__ void __launch_bounds__(64) plain(int* __restrict__ x) { x[threadIdx.x] += 1; }
    """
    x, y = np.zeros(4, np.float32), np.zeros(4, np.int32)
    module = rl.cuda.compile(source, backend="simt")
    assert module.kernels == ["inner::fill<float, 3>", "inner::fill<int, 4>", "plain"]
    module["inner::fill<float, 3>"](1, 4, x, 2.0)
    module["inner::fill<int, 4>"](1, 4, y, 2)
    module["plain"](1, 4, y)
    assert x.tolist() == [6.0] * 4 and y.tolist() == [9] * 4


def test_many_arguments_whose_address_is_taken(run):
    names = [f"a{i}" for i in range(12)]
    source = f"""
    __device__ int at(const int* p, int n) {{ return n ? p[0] + at(p, n - 1) : 0; }}
    __global__ void f(int* y, {", ".join(f"int {name}" for name in names)}) {{
      a11 += 1;
      y[0] = {" + ".join(f"at(&{name}, 2)" for name in names)};
    }}"""
    y = np.zeros(1, np.int32)
    assert run(source, 1, 1, y, *range(12)).findings == [] and y[0] == 2 * (66 + 1)


def test_three_dimensions(run):
    source = """
    __global__ void where(int* out, int width) {
      int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
      out[(blockIdx.z * gridDim.y * blockDim.y + y) * width + x] = 100 * blockIdx.z + 10 * y + x;
    }"""
    out = np.zeros((2, 6, 8), np.int32)
    run(source, (2, 3, 2), (4, 2), out, 8)
    z, y, x = np.indices((2, 6, 8))
    assert np.array_equal(out, 100 * z + 10 * y + x)


def test_indices_are_vectors_of_three(run):
    source = """
    __global__ void f(int* y) {
      uint3 t = threadIdx, b = blockIdx;
      dim3 size = blockDim;
      y[(b.x * size.y + t.y) * size.x + t.x] = 100 * b.x + 10 * t.y + t.x;
    }"""
    y = np.zeros((2, 3, 4), np.int32)
    assert run(source, 2, (4, 3), y).findings == [] and y[1, 2, 3] == 123 and y[0, 2, 1] == 21


@pytest.mark.parametrize("words", ["static __shared__", "__shared__ static", "static volatile __shared__"])
def test_shared_memory_may_be_called_static(run, words):
    y = np.arange(32, dtype=np.float32)
    source = "__global__ void f(float* y) { WORDS float s[32], t; s[threadIdx.x] = y[threadIdx.x]; __syncthreads();"
    run(f"{source} y[threadIdx.x] = s[31 - threadIdx.x]; }}".replace("WORDS", words), 1, 32, y)
    assert y.tolist() == list(range(31, -1, -1))


def test_dynamic_shared_memory_of_two_types(run):
    source = """
    extern __shared__ __align__(16) unsigned char raw[];
    template <class T> __device__ T* part(int bytes) { return reinterpret_cast<T*>(raw + bytes); }
    __global__ void f(float* y, int n) {
      float4* four = part<float4>(0);
      int* whole = part<int>(16 * n);
      four[threadIdx.x] = make_float4(1, 2, 3, threadIdx.x);
      whole[threadIdx.x] = 10 * threadIdx.x;
      __syncthreads();
      y[threadIdx.x] = four[n - 1 - threadIdx.x].w + whole[threadIdx.x];
    }
    """
    y = np.zeros(32, np.float32)
    assert run(source, 1, 32, y, 32, shared_bytes=20 * 32).findings == []
    assert y.tolist() == [31 - i + 10 * i for i in range(32)]
    assert run(source, 1, 32, y, 32, shared_bytes=20 * 32 - 1).findings[0].kind == "out of bounds"


def test_constants_and_variables_of_the_device(run):
    source = """
    __constant__ float weights[3] = {0.5f, 1.0f, 2.0f};
    constexpr int kTwo = 2;
    __device__ const int table[2] = {7, 8};
    __device__ int counter;
    __device__ float half_of(float x) { return x / kTwo; }
    __global__ void f(float* y) {
      atomicAdd(&counter, 1);
      __syncthreads();
      y[threadIdx.x] = half_of(weights[threadIdx.x % 3]) + table[threadIdx.x % 2] + counter;
    }"""
    y = np.zeros(4, np.float32)
    launch = run(source, 1, 4, y)
    assert y.tolist() == [0.25 + 7 + 4, 0.5 + 8 + 4, 1 + 7 + 4, 0.25 + 8 + 4] and launch.findings == []
    assert launch.counts.global_atomics.threads == 4
    found = run(source.replace("weights[threadIdx.x % 3]", "weights[3 + (threadIdx.x & 1)]"), 1, 4, y).findings
    assert found[0].kind == "out of bounds"


def test_what_a_kernel_prints(run, capfd):
    source = r"""__global__ void f(int* y) {
      printf("thread %d of %u: %5.2f %s %c %x %lld 100%%\n", threadIdx.x, blockDim.x, 1.5f, "done", 'x', -1, 1LL << 40);
      y[0] = 1;
    }"""
    run(source, 1, 2, np.zeros(1, np.int32))
    assert capfd.readouterr().out == "".join(
        f"thread {t} of 2:  1.50 done x ffffffff {1 << 40} 100%\n" for t in range(2)
    )


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (r'"%d %u %x\n", 1ll << 40, (1ull << 40) + 5, -1ll', "0 5 ffffffff"),  # 32 bits, as on a GPU
        (r'"%lld %hhd %hu %zu\n", -1ll << 40, 300, 65537, sizeof(int)', f"{-1 << 40} 44 1 4"),
        (r'"%*d|%-*d|%.*f\n", 5, 3, 4, 7, 2, 1.234', "    3|7   |1.23"),
        (r'"%d %d|%a\n", 1', "1 (missing)|(missing)"),
    ],
)
def test_formats(run, capfd, arguments, printed):
    run(f"__global__ void f(int* y) {{ printf({arguments}); y[0] = 1; }}", 1, 1, np.zeros(1, np.int32))
    assert capfd.readouterr().out == printed + "\n"


def test_macros_lines_and_options(build):
    source = """
#define AT(i) (blockIdx.x * blockDim.x + (i))  // a comment
#if WIDTH > 2 && \\
    defined(WIDTH)
__global__ void f(int* y) { y[AT(threadIdx.x)] = WIDTH + __LINE__; }
#else
#error no width
#endif
"""
    y = np.zeros(4, np.int32)
    build(source, options=["-DWIDTH=4", "-arch=sm_90", "--use_fast_math", "-G", "--maxrregcount=32", "--fmad=false"])(
        2, 2, y
    )
    assert y.tolist() == [4 + 5] * 4
    with pytest.raises(rl.cuda.CompileError, match=r"source\(7\): error: #error no width"):
        build(source, options=["-DWIDTH=1"])
    with pytest.raises(ValueError, match="options: backend='simt' knows -DNAME=value, and not -Iinclude"):
        build(source, options=["-Iinclude"])


@pytest.mark.parametrize(
    ("before", "options", "asserts"),
    [
        ("", [], True),
        ("#include <cassert>", [], True),
        ("", ["-DNDEBUG"], False),
        ("#include <assert.h>", ["-DNDEBUG=1"], False),
        ("#define NDEBUG\n#include <assert.h>", [], False),
        ("#define NDEBUG  // before it\n#include <cassert>  // once more", [], False),
        ("#include <assert.h>\n#define NDEBUG", [], True),  # only an include looks at it
        ("#define NDEBUG\n#include <assert.h>\n#undef NDEBUG\n#include <assert.h>", [], True),
    ],
)
def test_assert_is_off_with_ndebug(build, before, options, asserts):
    source = f"{before}\n__global__ void f(int* y) {{ assert(y[0] == 1); y[0] = __LINE__; }}"
    y = np.zeros(1, np.int32)
    line = source.count("\n") + 1
    kernel = build(source, options=options)
    if asserts:
        with pytest.raises(
            rl.cuda.KernelError, match=f"line {line}: Thread 0 of block 0 does not meet assert.y.0. == 1.[.]"
        ):
            kernel(1, 1, y)
    else:
        kernel(1, 1, y)
        assert y.tolist() == [line]


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("float4 v = {0};", [0, 0, 0, 0]), ("float4 v = {1.f, 2};", [1, 2, 0, 0]), ("float4 v{1, 2, 3};", [1, 2, 3, 0]),
        ("float4 v = {};", [0, 0, 0, 0]), ("float2 u = {n + .5f}; float4 v = {u.x, u.y};", [2.5, 0, 0, 0]),
        ("float4 v = c[1];", [8, 9, 0, 0]), ("float4 v; v = {3};", [3, 0, 0, 0]),
        ("float4 v = same({4});", [4, 0, 0, 0]),
        ("float4 a[2][2] = {0}; float4 v = a[1][n - 1];", [0, 0, 0, 0]),
        ("struct { float4 v; int n; } s = {{5}, 6}; float4 v = s.v;", [5, 0, 0, 0]),
    ],
)  # fmt: skip
def test_vectors_of_fewer_values(run, declared, expected):
    source = f"""
    __constant__ float4 c[2] = {{{{7}}, {{8.f, 9.f}}}};
    __device__ float4 same(float4 v) {{ return v; }}
    __global__ void f(float4* y, int n) {{ {declared} y[0] = v; }}"""
    y = np.ones(4, np.float32)
    launch = run(source, 1, 1, y, 2)
    assert launch.findings == [] and y.tolist() == expected and launch.counts.global_stores.requests == 1


@pytest.mark.parametrize("statement", ["float4 v = 1.f;", "float4 v = 0;", "v2 = 2.f;", "take(1.f);"])
def test_a_number_is_no_vector(refused, statement):
    before = "__device__ void take(float4) {}\n"
    log = refused(f"{before}__global__ void f(float2* y) {{ float2 v2 = {{1}}; {statement} y[0] = v2; }}")
    assert log.startswith("source(2): error: ")


@pytest.mark.parametrize("copied", ["U b = a;", "U b; b = a;"])
def test_a_union_with_a_vector_is_copied_by_its_members(run, refused, copied):
    source = """
    union U { float4 v; float f[4]; };
    __global__ void f(float4* y) { U a; a.f[0] = a.f[1] = a.f[2] = a.f[3] = 2; COPIED y[0] = b.v; }"""
    says = "source(3): error: a union that holds a float4 or its like cannot be copied as a whole here"
    assert refused(source.replace("COPIED", copied)) == f"{says}: copy the member that was set"
    y = np.zeros(4, np.float32)
    run(source.replace("COPIED", "U b; b.v = a.v;"), 1, 1, y)
    assert y.tolist() == [2.0] * 4


HALVES = """
#ifdef WIDE
__global__ void f(float* y, int n) { y[0] = n; }
#else
__global__ void f(float* y) { y[0] = 7; }
#endif
#if 0 && \\
    1
#if 1
__global__ void unfinished(float* y) { y[0] = undeclared; }
#else  // it was
__global__ void finished(float* y) { y[0] = 1; }
#endif
#elif 1
__device__ int line() { return __LINE__; }  // line 15
#endif /* of it */
__global__ void last(int* y) { y[0] = line(), y[1] = __LINE__; }  // line 17
"""


def test_kernels_are_those_that_an_if_leaves_in():
    y = np.zeros(1, np.float32)
    for options, args, expected in (((), (), 7), (("-DWIDE",), (5,), 5)):
        module = rl.cuda.compile(HALVES, options, backend="simt")
        module["f"](1, 1, y, *args)
        assert module.kernels == ["f", "last"] and y[0] == expected
        lines = np.zeros(2, np.int32)
        module["last"](1, 1, lines)
        assert lines.tolist() == [15, 17]
    with pytest.raises(rl.cuda.CompileError, match="there is no kernel"):
        rl.cuda.compile("#if 0\n__global__ void f(float* y) {}\n#endif", backend="simt")


@pytest.mark.parametrize("name", ["exp", "min", "printf", "memset", "add"])
def test_a_kernel_may_be_called_as_a_function(build, name):
    source = (
        f"__device__ int add(int a, int b) {{ return a + b; }}\n__global__ void {name}(int* y) {{ y[0] = add(1, 2); }}"
    )
    y = np.zeros(1, np.int32)
    build(source)(1, 1, y)
    assert y[0] == 3


@pytest.mark.parametrize(
    ("before", "declared", "name"),
    [
        (
            "__device__ float4& operator+=(float4& a, float4 b) { a.x += b.x; return a; }",
            "void f(float* y, int n)",
            "f",
        ),
        ("__device__ int twice(int a = 3) { return 2 * a; }", "void f(float* y, int n = twice(4))", "f"),
        ("struct __align__(16) Row { float a[4]; };", "void f(float* y, int n)", "f"),
        ("enum class Kind : int { A }; struct alignas(8) P { int a = (3); };", "void f(float* y, int n)", "f"),
        (
            "constexpr int table[2] = {(1), 2}; template <int (*F)(int) = nullptr> struct S {};",
            "void f(float*, int n)",
            "f",
        ),
        ("#define COUNT int n\n", "void f(float* y, // an array\n  COUNT /* its size */)", "f"),
    ],
)
def test_kernels_behind_other_declarations(build, before, declared, name):
    y = np.zeros(4, np.float32)
    with pytest.raises(rl.cuda.KernelError) as error:
        build(f"{before}\n__global__ {declared}\n{{ assert(n != 5); }}", name)(1, 1, y, 5)
    assert error.value.findings[0].line == 3 + before.count("\n") + declared.count("\n")


def test_special_cases_of_a_template_are_kernels():
    source = """
    template <class T = float, int N = 2> __global__ void fill(T* y) { y[0] = N; }
    template __global__ void fill<>(float*);
    template <> __global__ void fill<float, 3>(float* y) { y[0] = 33; }"""
    module, y = rl.cuda.compile(source, backend="simt"), np.zeros(1, np.float32)
    assert module.kernels == ["fill<>", "fill<float, 3>"]
    module["fill<float, 3>"](1, 1, y)
    assert y[0] == 33


def test_a_source_may_begin_with_a_byte_order_mark_and_end_its_lines_as_windows_does(build):
    y = np.zeros(1, np.float32)
    source = "\ufeff#define ONE \\\r\n  1\r\n__global__ void f(float* y) {\r\n  y[0] = ONE;\r\n  y[1] = 2;\r\n}\r\n"
    with pytest.raises(rl.cuda.KernelError, match=r"line 5: .* writes 4 bytes at y\[1\]"):
        build(source)(1, 1, y)
    assert y[0] == 1


def test_shared_variables_of_an_alignment_and_static_ones(run):
    source = """
    struct __align__(8) Pair { float a, b; };
    __constant__ __align__(16) float weights[4] = {1, 2, 3, 4};
    __device__ float last(float v) { static __shared__ float s[32]; s[threadIdx.x] = v; __syncthreads(); return s[31]; }
    __global__ void f(float* y) {
      __shared__ __align__(16) float a[32];
      __shared__ alignas(float4) float b[32], c;
      alignas(32) __shared__ Pair d[2];
      float __align__(16) e[4];
      a[threadIdx.x] = b[threadIdx.x] = threadIdx.x;
      *(float4*)e = *(float4*)weights;
      if (threadIdx.x == 0) c = 1, d[0].a = sizeof(Pair);
      __syncthreads();
      y[threadIdx.x] = (size_t)a % 16 + (size_t)b % 16 + (size_t)d % 32 + a[31] + b[1] + c + d[0].a + e[3] + last(2);
    }"""
    y = np.zeros(32, np.float32)
    assert run(source, 1, 32, y).findings == [] and y.tolist() == [31 + 1 + 1 + 8 + 4 + 2] * 32


@pytest.mark.parametrize("mode", ["check", "functional"])
def test_local_variables_that_nobody_set_look_wrong(build, mode):
    if not toolchain.wild_locals():
        pytest.skip("g++ 11 has no such flag")
    source = """
    __global__ void f(float* y, int n) {
      float sum, a[4];
      a[0] = 1;
      for (int i = 0; i < n; ++i) sum += i;
      y[0] = sum, y[1] = a[n], y[2] = a[0];
    }"""
    y = np.zeros(3, np.float32)
    build(source)(1, 1, y, 3, mode=mode)
    assert (np.abs(y[:2]) > 1e30).all() and y[2] == 1


def test_a_variable_that_cannot_look_wrong_is_refused(refused):
    if not toolchain.wild_locals():
        pytest.skip("g++ 11 has no such flag")
    source = (
        "__global__ void f(float* y, int n) {\n  switch (n) {\n    float sum;\n    default: y[0] = sum += n;\n  }\n}"
    )
    what = "a variable before the first case of a switch is not supported: declare it before the switch"
    assert refused(source).startswith(f"source(3): error: {what}")


@pytest.mark.parametrize("mode", ["check", "functional"])
def test_memset_and_memcpy_of_a_local_variable(build, mode):
    source = """
    struct Many { int v[400]; };
    __device__ int sum(const Many& many, int n) { return many.v[n] + many.v[n + 1]; }
    __global__ void f(int* y, int n) {
      Many many;
      memset(&many, 0, sizeof many);
      many.v[n] = 5;
      y[8] = sum(many, n);
      memcpy(y, &many, 4 * n + 4);
    }"""
    y = np.ones(9, np.int32)
    build(source)(1, 2, y, 3, mode=mode)
    assert y.tolist() == [0, 0, 0, 5, 1, 1, 1, 1, 5]


@pytest.mark.parametrize(
    "declared, called",
    [
        ("__device__ Pair join(Pair a, Pair b) { return {fmaxf(a.m, b.m), a.l + b.l}; }", "p = join(p, Pair{x, 1})"),
        ("__device__ __noinline__ Pair join(Pair a) { a.m = fmaxf(a.m, a.l); return a; }", "p = join({p.m, x})"),
        ("", "p = {fmaxf(p.m, x), p.l + 1}"),
        ("__device__ float2 upon(float2 v, int n) { return n ? upon(make_float2(fmaxf(v.x, v.y), v.y), n - 1) : v; }",
         "p.m = upon(make_float2(p.m, x), 2).x"),
    ],
    ids=["by value", "by value, not inlined", "of a loop", "a result of a function that calls itself"],
)  # fmt: skip
def test_structures_of_a_thread_are_passed_by_value(run, declared, called):
    source = """
    struct Pair { float m, l; };
    DECLARED
    __global__ void f(const float* v, float* y, int n) {
      Pair p{-1, 0};
      for (int i = threadIdx.x; i < n; i += 32) { float x = v[i]; CALLED; }
      y[threadIdx.x] = p.m;
    }"""
    y, v = np.zeros(32, np.float32), np.arange(96, dtype=np.float32)
    run(source.replace("DECLARED", declared).replace("CALLED", called), 1, 32, v, y, 96)
    assert y.tolist() == list(range(64, 96))
