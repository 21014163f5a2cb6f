"""The C++ that kernels are written in, and where a line-by-line translation would go wrong."""

import numpy as np
import pytest

import rooflab as rl


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


BARRIERS = """
__global__ void f(int* y, int n) {
  int t = threadIdx.x;
  int count = __syncthreads_count(t < n), all = __syncthreads_and(t < n), any = __syncthreads_or(t == n);
  y[t] = 10000 * count + 10 * all + any;
}"""


def test_barriers_that_count(run):
    y = np.zeros(100, np.int32)
    for n in (0, 40, 99, 100):
        assert run(BARRIERS, 1, 100, y, n).findings == []
        assert y.tolist() == [10000 * n + 10 * (n == 100) + (n < 100)] * 100


WARP = """
__global__ void f(unsigned* y) {
  unsigned t = threadIdx.x, full = 0xffffffff, row = blockDim.x;
  y[0 * row + t] = __shfl_sync(full, t, 5);
  y[1 * row + t] = __shfl_up_sync(full, t, 2);
  y[2 * row + t] = __shfl_down_sync(full, t, 2, 8);
  y[3 * row + t] = __shfl_xor_sync(full, t, 3);
  y[4 * row + t] = __ballot_sync(full, t % 3 == 0);
  y[5 * row + t] = __all_sync(full, t < 64) + 2 * __any_sync(full, t == 3);
  y[6 * row + t] = __match_any_sync(full, t / 4);
  y[7 * row + t] = __reduce_add_sync(full, t) + __reduce_max_sync(full, t);
  y[8 * row + t] = (unsigned)__shfl_sync(full, 2.5 * t, 3, 4) + __activemask() % 2;
}"""


def test_what_a_warp_does_together(run):
    y = np.zeros((9, 32), np.uint32)
    launch = run(WARP, 1, 32, y)
    t = np.arange(32)
    assert launch.findings == [] and launch.counts.warp_operations == 11
    assert y[0].tolist() == [5] * 32 and y[1].tolist() == [0, 1, *range(30)]
    assert y[2].tolist() == [i + 2 if i % 8 < 6 else i for i in range(32)] and np.array_equal(y[3], t ^ 3)
    assert y[4].tolist() == [sum(1 << i for i in range(0, 32, 3))] * 32 and y[5].tolist() == [3] * 32
    assert y[6].tolist() == [0xF << (i // 4 * 4) for i in range(32)] and y[7].tolist() == [496 + 31] * 32
    assert y[8].tolist() == [int(2.5 * (i // 4 * 4 + 3)) + 1 for i in range(32)]


def test_which_threads_are_active_together(run):
    source = """
    __global__ void f(unsigned* y) {
      unsigned mask = 0;
      if (threadIdx.x % 2) mask = __activemask();
      y[threadIdx.x] = mask + (mask ? __shfl_sync(mask, 1, 1) : 0);
    }"""
    y = np.zeros(32, np.uint32)
    assert run(source, 1, 32, y).findings == []
    assert y.tolist() == [0, 0xAAAAAAAB] * 16


def test_short_warps_and_threads_that_have_ended(run):
    source = """
    __global__ void f(int* y, int n) {
      if (threadIdx.x >= n) return;
      y[threadIdx.x] = __reduce_max_sync(0xffffffff, (int)threadIdx.x);
    }"""
    y = np.zeros(40, np.int32)
    assert run(source, 1, 40, y, 36).findings == []
    assert y.tolist() == [31] * 32 + [35] * 4 + [0] * 4


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("int", np.int32), ("unsigned", np.uint32), ("unsigned long long", np.uint64), ("float", np.float32),
     ("double", np.float64)],
)  # fmt: skip
def test_atomic_operations(run, kind, dtype):
    whole = (
        ""
        if kind in ("float", "double")
        else f"""
      atomicMax(&y[2], ({kind})threadIdx.x); atomicMin(&y[3], ({kind})threadIdx.x);
      atomicOr(&y[4], ({kind})1 << (threadIdx.x % 16)); atomicAnd(&y[5], ~(({kind})1 << (threadIdx.x % 3)));
      atomicXor(&y[6], ({kind})threadIdx.x);"""
    )
    source = f"""
    __global__ void f({kind}* y, {kind}* old) {{
      old[threadIdx.x] = atomicAdd(&y[0], 2);
      {"y[1] = 63" if kind == "double" else f"atomicExch(&y[1], ({kind})threadIdx.x)"};{whole}
      {kind} seen = y[7], assumed;
      do {{ assumed = seen; seen = atomicCAS(&y[7], assumed, assumed + 1); }} while (seen != assumed);
    }}"""
    source = source if kind != "float" and kind != "double" else source[: source.index(f"{kind} seen")] + "}"
    y, old = np.array([0, 0, 0, 9, 0, 15, 0, 0], dtype), np.zeros(64, dtype)
    assert run(source, 1, 64, y, old).findings == []
    expected = [128, 63, 0, 9, 0, 15, 0, 0] if not whole else [128, 63, 63, 0, 65535, 8, 0, 64]
    assert y.tolist() == expected and sorted(old.tolist()) == [2 * i for i in range(64)]


def test_atomic_counters_and_16_bits(run):
    source = """
    __global__ void f(unsigned* y, half* h, half2* h2) {
      atomicInc(&y[0], 9); atomicDec(&y[1], 9); atomicSub(&y[2], 1);
      atomicAdd(h, half(0.5f)); atomicAdd(h2, make_half2(1.0f, half(2.0f)));
    }"""
    y, h, h2 = np.array([0, 0, 64], np.uint32), np.zeros(1, np.float16), np.zeros(2, np.float16)
    assert run(source, 1, 13, y, h, h2).findings == []
    assert y.tolist() == [3, 7, 51] and h.tolist() == [6.5] and h2.tolist() == [13, 26]


def test_cooperative_groups(run):
    source = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    __global__ void f(int* y) {
      cg::thread_block block = cg::this_thread_block();
      auto tile = cg::tiled_partition<8>(block);
      int v = cg::reduce(tile, (int)block.thread_rank(), cg::plus<int>());
      block.sync();
      y[block.thread_rank()] = 1000 * tile.meta_group_rank() + v + tile.shfl(v, 0) * 0 + (int)tile.size();
    }"""
    y = np.zeros(64, np.int32)
    launch = run(source, 1, 64, y)
    assert launch.findings == [] and launch.counts.block_barriers == 1
    assert y.tolist() == [1000 * (t // 8) + sum(range(t // 8 * 8, t // 8 * 8 + 8)) + 8 for t in range(64)]


@pytest.mark.parametrize(("m", "n"), [(16, 16), (32, 8), (8, 32)])
@pytest.mark.parametrize("layouts", ["row_major row_major", "col_major row_major", "row_major col_major"])
@pytest.mark.parametrize(("type_", "sum_"), [("half", "float"), ("__nv_bfloat16", "float"), ("half", "half")])
def test_matrix_products_of_a_warp(run, m, n, layouts, type_, sum_):
    of_a, of_b = layouts.split()
    step_a, stride_a = (16, 32) if of_a == "row_major" else (16 * m, m)
    step_b, stride_b = (16 * n, n) if of_b == "row_major" else (16, 32)
    source = f"""
    #include <mma.h>
    using namespace nvcuda;
    __global__ void f(const {type_}* a, const {type_}* b, {sum_}* d, {sum_}* t) {{
      wmma::fragment<wmma::matrix_a, {m}, {n}, 16, {type_}, wmma::{of_a}> fa;
      wmma::fragment<wmma::matrix_b, {m}, {n}, 16, {type_}, wmma::{of_b}> fb;
      wmma::fragment<wmma::accumulator, {m}, {n}, 16, {sum_}> sum;
      wmma::fill_fragment(sum, 0.0f);
      for (int k = 0; k < 2; ++k) {{
        wmma::load_matrix_sync(fa, a + {step_a} * k, {stride_a});
        wmma::load_matrix_sync(fb, b + {step_b} * k, {stride_b});
        wmma::mma_sync(sum, fa, fb, sum);
      }}
      for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= {sum_}(2.0f);
      wmma::store_matrix_sync(d, sum, {n}, wmma::mem_row_major);
      wmma::store_matrix_sync(t, sum, {m}, wmma::mem_col_major);
      wmma::load_matrix_sync(sum, t, {m}, wmma::mem_col_major);
      wmma::store_matrix_sync(d + {m * n}, sum, {n}, wmma::mem_row_major);
    }}"""
    random = np.random.default_rng(0)
    a, b = random.integers(-4, 5, (m, 32)).astype("float32"), random.integers(-4, 5, (32, n)).astype("float32")
    dtypes = {"half": "float16", "__nv_bfloat16": "bfloat16", "float": "float32"}
    given = [rl.tensor(np.ascontiguousarray(x.T if by == "col_major" else x), dtype=dtypes[type_])
             for x, by in ((a, of_a), (b, of_b))]  # fmt: skip
    d, t = rl.zeros(2, m, n, dtype=dtypes[sum_]), rl.zeros(n, m, dtype=dtypes[sum_])
    launch = run(source, 1, 32, *given, d, t)
    assert launch.findings == []
    assert d.tolist() == [(2 * a @ b).tolist()] * 2 and t.tolist() == (2 * a @ b).T.tolist()
    assert launch.counts.tensor_flops == 2 * m * n * 32


def test_a_matrix_product_needs_its_whole_warp(run):
    source = """
    #include <mma.h>
    using namespace nvcuda::wmma;
    __global__ void f(const half* x, float* y) {
      fragment<matrix_a, 16, 16, 16, half, row_major> a;
      fragment<matrix_b, 16, 16, 16, half, row_major> b;
      fragment<accumulator, 16, 16, 16, float> c;
      fill_fragment(c, 0.0f);
      load_matrix_sync(a, x, 16);
      load_matrix_sync(b, x, 16);
      if (threadIdx.x < 31)
        mma_sync(c, a, b, c);
      y[threadIdx.x] = c.x[0];
    }"""
    found = run(source, 1, 32, np.zeros(256, np.float16), np.zeros(32, np.float32)).findings
    assert [f.kind for f in found] == ["missed threads of a warp"] and found[0].line == 12


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
    build(source, options=["-DWIDTH=4", "-arch=sm_90", "--use_fast_math"])(2, 2, y)
    assert y.tolist() == [4 + 5] * 4
    with pytest.raises(rl.cuda.CompileError, match=r"source\(7\): error: #error no width"):
        build(source, options=["-DWIDTH=1"])
    with pytest.raises(ValueError, match="options: backend='simt' knows -DNAME=value, and not --maxrregcount=8"):
        build(source, options=["--maxrregcount=8"])


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
