"""What nvcc takes is taken here too, and what is refused is told with what to write instead."""

import re

import numpy as np
import pytest

import rooflab as rl


def test_a_macro_may_stand_for_device(build):
    source = """
    #ifdef __CUDACC__
    #define HD __host__ __device__ __forceinline__
    #else
    #define HD
    #endif
    #define DEVICE static __device__ inline
    HD float twice(float x) { return 2 * x; }
    template <class T> DEVICE T next(T x) { return x + 1; }
    struct Point { int x; HD int other() const { return -x; } };
    HD int total = 7;
    __global__ void f(float* y) { Point p = {3}; y[0] = twice(next(4.0f)) + p.other(); y[1] = total; }
    """
    y = np.zeros(2, np.float32)
    build(source)(1, 1, y)
    assert y.tolist() == [7, 7]


def test_names_of_std(build):
    source = """
    #include <cmath>
    #include <cstdint>
    #include <cstdlib>
    using std::sqrt;
    using namespace std;
    __global__ void f(float* y, std::uint32_t n) {
      std::size_t i = std::abs(-1);
      y[0] = sqrt(16.0f) + std::exp(0.0f) + std::pow(2.0f, 3.0f) + std::fabs(-1.5f) + n;
      y[i] = std::isnan(nanf("")) + isnan(nan("")) + std::isinf(y[0]);
    }
    """
    y = np.zeros(2, np.float32)
    build(source)(1, 1, y, 100)
    assert y.tolist() == [114.5, 2]


def test_what_a_compiler_is_told(build):
    source = """
    __global__ void f(float* y, int n) {
      __builtin_assume(n > 0);
      float* p = (float*)__builtin_assume_aligned(y, 16);
      if (__builtin_expect(n == 2, 1)) p[1] = n;
      if (n > 5) __builtin_unreachable();
    }
    """
    y = np.zeros(2, np.float32)
    build(source)(1, 1, y, 2)
    assert y.tolist() == [0, 2]


def test_numbers_with_and_without_a_sign_are_compared_without_a_warning():
    source = "__global__ void f(float* y) { for (int i = 0; i < blockDim.x; ++i) y[i] = 1; }"
    assert rl.cuda.compile(source, backend="simt").log == ""


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("#include <cuda/barrier>\n", r"CUDA's C\+\+ libraries are not there: write barriers"),
        ("#include <cooperative_groups/scan.h>\n", "only the block, tiles, .* are there"),
        ("#include <curand_kernel.h>\n", "random numbers are not there: pass them as an array"),
        ("#include <cuda_pipeline.h>\n", "write loads and stores to shared memory"),
        ("#include <vector>\n", "so leave the line out"),
        ("int main() { return 0; }", r"leave it out, and launch the kernel with module\[name\]\(grid, block, ...\)"),
        ("__global__ void g() { f<<<1, 1>>>(nullptr); }", r"launch it from Python with module\[name\]\("),
        ("__device__ float g(float v) { return __shfl_down(v, 1); }", "write __shfl_down_sync, whose first argument"),
        ("__device__ int g(int v) { return __ballot(v); }", "write __ballot_sync, whose first argument is a mask"),
        ("__device__ void g() { __syncthread(); }", r"__syncthread is not supported: did you mean __syncthreads\?"),
        ("__globl__ void g() {}", r"did you mean __global__\?"),
        ("void g(float* y) {}", "begin it with __global__ if it is a kernel, with __device__ if a kernel calls it"),
        ("int n = 3;", "a variable of the host: begin it with __constant__ or __device__"),
        ("const float w[2] = {1, 2};", "a variable of the host: begin it with __constant__ or __device__"),
        ("__managed__ int n;", "write __device__"),
        ("struct S { static __global__ void g() {} };", "a __global__ function has to stand outside of classes"),
        ("__global__ void g(const int& n) {}", "a reference is not supported: take the value, or a pointer"),
        ("__device__ int g() { static int n; return n; }", "use a __device__ variable"),
        (
            '__device__ void g(float4 v) { printf("%f", v); }',
            "error: printf takes numbers, pointers and strings[^\n]*$",
        ),
        ("__global__ void g(flot* y) {}", "^source.1.: error: 'flot' was not declared in this scope"),
    ],
)
def test_what_to_write_instead(refused, source, what):
    log = refused(f"{source}\n__global__ void f(float* y) {{ y[0] = 1; }}")
    assert re.search(what, log) and log.startswith("source(1): error: ")


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("template <typename T> __global__ void fill(const T* x, T* y) {}", "fill<float>(const float* x, float* y);"),
        ("template <class T, int N = 3>\n__global__ void fill(T* y) {}", "fill<float, 64>(float* y);"),
        ("/* a kernel */ template <int N> __global__ void fill(int* y);", "fill<64>(int* y);"),
    ],
)
def test_a_template_needs_instances(refused, source, how):
    assert refused(source).endswith(f"a template needs its instances too, such as template __global__ void {how}")


def test_a_name_is_no_source(refused):
    assert "this is a file's name: give the text in it" in refused("kernels/scale.cu")


def test_names_of_kernels():
    source = """
    template <class T, int N> __global__ void fill(T* y) { y[threadIdx.x] = N; }
    template __global__ void fill<float, 2>(float*);
    template <class T> __global__ void other(T* y) { y[threadIdx.x] = 1; }
    """
    module = rl.cuda.compile(source, backend="simt")
    with pytest.raises(KeyError, match=r"no kernel 'fill'; the source has fill<float, 2>\"$"):
        module["fill"]
    with pytest.raises(KeyError, match=r"write template __global__ void other<double>\(double\* y\);"):
        module["other<double>"]
    module = rl.cuda.compile("__global__ void f(float* y) { y[0] = 1; }", backend="simt")
    with pytest.raises(AttributeError, match=r"no attribute 'f'; module\['f'\] is the kernel"):
        getattr(module, "f")  # noqa: B009
    with pytest.raises(AttributeError, match=r"no attribute 'g'$"):
        getattr(module, "g")  # noqa: B009


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("assert(y[0] > 0);", "assert(y[0] > 0)"),
        ('assert((n + 1) * 2 < 0 && "a reason");', 'assert((n + 1) * 2 < 0 && "a reason")'),
        ("HELD(n > 9);", "an assert"),
        ("assert(n >\n 9);", "an assert"),
    ],
)
def test_an_assert_is_told_as_it_is_written(run, statement, told):
    source = f"#define HELD(what) assert(what)\n__global__ void f(float* y, int n) {{\n{statement}\n}}"
    found = run(source, 2, (4, 8), np.zeros(4, np.float32), 3).findings[0]
    assert (found.kind, found.line, found.block, found.thread) == ("assertion", 3, (0, 0, 0), (0, 0, 0))
    assert str(found) == f"line 3: Thread 0 of block 0 does not meet {told}."


def test_what_cannot_be_reached_ends_the_kernel(run):
    source = "__global__ void f(int* y, int n) {\n if (n > 3) __builtin_unreachable();\n y[0] = n; }"
    found = run(source, 1, 1, np.zeros(1, np.int32), 5).findings
    assert [(one.kind, one.line) for one in found] == [("trap", 2)]
