"""What is not run: by name, with its line."""

import re

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import front_end


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ('asm volatile("mov.u32 %0, 1;" : "=r"(n));', "inline PTX"),
        ('__asm__("nop");', "inline PTX"),
        ("y[0] = tex2D<float>(t, 0, 0);", "tex2D"),
        ("cudaTextureObject_t t;", "a texture"),
        ("CUtensorMap map;", "TMA"),
        ("f<<<1, 1>>>(y, n);", "launch from a kernel"),
        ("float* p = new float[4];", "device's heap"),
        ("y = (float*)malloc(4);", "device's heap"),
        ("n = clock();", "a clock"),
        ("try { n = 1; } catch (...) {}", "exception"),
        ("std::max(n, 1);", "C++ standard library"),
        ("static int kept; kept = n;", "a static variable"),
        ("__builtin_trap();", "__builtin_trap"),
        ("rl_exit();", "names that begin with rl_"),
        ("y[0] = __tsan_read4;", "__tsan_read4"),
        ("thread_local int k;", "each host thread"),
        ("int k [[gnu::unused]] = 0;", "attribute"),
        ("#pragma omp parallel", "#pragma omp"),
        ("y[0] = erfcxf(y[1]);", "the function erfcxf is not"),
        ("y[0] = scalbln(1.0, 2);", "the function scalbln is not"),
        ("#line 7", "#line"),
        ("#define JOIN(a, b) a##b", "joining of tokens"),
        ("int \\u0061 = 0;", "not C++ that is known"),
        ('const char* s = R"(x)";', "not C++ that is known"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(refused, statement, what):
    log = refused(f"__global__ void f(float* y, int n) {{\n  y[0] = 1;\n{statement}\n}}")
    assert log.startswith("source(3): error: ") and what in log


@pytest.mark.parametrize(
    ("source", "line", "what"),
    [
        ("#include <iostream>\n__global__ void f() {}", 1, "#include <iostream> is not supported"),
        ('#include "/etc/passwd"\n__global__ void f() {}', 1, "is not supported"),
        ("\nint main() { return 0; }\n__global__ void f() {}", 2, "code of the host"),
        ("__global__ void f() {}\nvoid g() {}", 2, "without execution space annotations"),
        ("__global__ void f() {}\nint counter = 0;", 2, "a variable of the host"),
        ("__global__ void __cluster_dims__(2) f() {}", 1, "a cluster of blocks"),
        ("__global__ int f() { return 1; }", 1, "void return type"),
        ("\n\n__global__ void f(float* x) {\n  x[0] = z;\n}", 4, "'z' was not declared"),
        ("__global__ void f(float* x) {\n  x[0] = 1\n}", 2, "expected ';'"),
        ("__device__ int f() { return 1; }", 0, "there is no kernel"),
        ("__global__ void f(float* x) {}\n__global__ void f(int* x) {}", 2, "overloads are not supported"),
        ("__global__ void f(float* x, int n) {\nfloat a[n]; x[0] = a[0];\n}", 2, "variable length"),
        ("__global__ void f(float* x) { __shared__ float t[1 << 16]; x[0] = t[threadIdx.x]; }", 0, "too much shared"),
        ("__global__ void f(float* x) {\nextern float g(float); x[0] = g(1);\n}", 0, "a call of _Z1gf is not"),
        ("__global__ void f() {", 1, "nothing closes"),
        ("__global__ void f() {}\n#define K(f) __global__ void f() {}\nK(g)", 2, "__global__ in a macro is not"),
        ("#define MOST __launch_bounds__(8)\n__global__ void MOST f() {}", 1, "__launch_bounds__ in a macro is not"),
        ("\n__global__ void __launch_bounds__() f() {}", 2, "__launch_bounds__ without a number of threads"),
        ("\n__global__ void\n__launch_bounds__(most) f() {}", 3, "'most' was not declared"),
        ("\n__global__ void f(float* y, const int& n) {}", 2, "parameter that is a reference"),
        ("__global__ void f() {\n__shared__ float s[2] = {1, 2};\n}", 2, "initial value of a __shared__"),
        ("__global__ void f() {\n__shared__ float s{1};\n}", 2, "initial value of a __shared__"),
        ("struct P { int a; __device__ P() : a(3) {} };\n__global__ void f(int* y) { __shared__ P p; y[0] = p.a; }", 0,
         "whose constructor does something"),
        ("__global__ void f(float* y) {\u00a0}", 1, "it begins with NO-BREAK SPACE"),
        ('__global__ void f(float* y) {\nprintf("x);\n}', 2, "a string that nothing closes"),
        # What headers refuse is told by the source's line, once, and without the headers' names.
        ("__global__ void f(float4* y) {\ny[0] = __shfl_sync(~0u, y[0], 0);\n}", 2, "2.: error: a shuffle moves"),
        ("__global__ void f(float* y) {\natomicMax(y, 1.0f);\n}", 2, "2.: error: CUDA's atomicMax takes .* int,"),
        ("__global__ void f(long long* y) {\natomicAdd(y, 1);\n}", 2, "CUDA's atomicAdd takes a pointer to one"),
        ('__global__ void f(half* y) {\nprintf("%f", y[0]);\n}', 2, "printf takes numbers, .* with __half2float"),
        ("__global__ void f(double* y) {\natomicExch(y, 1);\n}", 2, "CUDA's atomicExch takes"),
        ("__global__ void f(int* y) {\natomicInc(y, 1u);\n}", 2, "CUDA's atomicInc takes .* unsigned"),
        ("__global__ void f(float* y) {\natomicCAS(y, 1.0f, 2.0f);\n}", 2, "CUDA's atomicCAS takes"),
    ],
)  # fmt: skip
def test_sources_that_are_no_kernels(refused, source, line, what):
    log = refused(source)
    assert re.search(what, log) and (line == 0 or f"source({line}): " in log)


def test_kernels_are_found_without_a_compiler():
    source = """
    namespace a { namespace b { __global__ void first(float* x = nullptr); __global__ void first(float* x) {} } }
    template <int N> __global__ void second(int* x) {}
    template __global__ void second<3 + 1>(int*);
    extern "C" { __global__ void __launch_bounds__(32, 2) third(const int (*x)[3]) {} }
    """
    assert front_end.translate(source, []).kernels == ["a::b::first", "second<3+1>", "third"]


def test_shared_arrays_of_many_kernels():
    """They lie side by side on the CPU, where each kernel of a GPU begins anew."""
    one = "__global__ void f{0}(float* x) {{ __shared__ float t[12000]; t[0] = 1; __syncthreads(); x[0] = t[0]; }}\n"
    fits = rl.cuda.compile("".join(one.format(number) for number in range(10)), backend="simt")
    for name in fits.kernels:
        assert fits[name](1, 1, np.zeros(1, np.float32), mode="count").counts.shared_loads.requests == 1
    with pytest.raises(rl.cuda.CompileError, match="compile its kernels in several sources"):
        rl.cuda.compile("".join(one.format(number) for number in range(11)), backend="simt")


def test_shared_memory_of_one_kernel():
    source = """
    __device__ float last(float v) { __shared__ float s[7500]; s[threadIdx.x] = v; __syncthreads(); return s[0]; }
    __global__ void f(float* x) { x[0] = last(1); }
    __global__ void g(float* x) { __shared__ float s[5000]; s[threadIdx.x] = 1; x[0] = s[threadIdx.x]; }
    """
    x = np.zeros(1, np.float32)
    module = rl.cuda.compile(source, backend="simt")
    module["f"](1, 1, x, shared_bytes=200_000)
    with pytest.raises(
        ValueError, match=r"\[f\] shared_bytes: 203000 bytes of dynamic and 30000 of static shared memory"
    ):
        module["f"](1, 1, x, shared_bytes=203_000)
    with pytest.raises(
        rl.cuda.CompileError, match="too much shared data: 50000 bytes in one kernel, where a block can"
    ):
        rl.cuda.compile(source.replace("x[0] = s[threadIdx.x]", "x[0] = last(s[threadIdx.x])"), backend="simt")


def test_what_an_option_defines_is_on_no_line():
    with pytest.raises(rl.cuda.CompileError, match=r"source: error: inline PTX \(asm\)"):
        rl.cuda.compile("__global__ void f(int* y) {}", ["-DA=asm", "-DB=1"], backend="simt")


def test_a_kernel_of_very_many_parameters(refused):
    source = "\n__global__ void f(int* y{}) {{ y[0] = a62; }}"
    many = "".join(f", int a{number}" for number in range(63))
    y = np.zeros(1, np.int32)
    rl.cuda.compile(source.format(many), backend="simt")["f"](1, 1, y, *range(63))
    assert y[0] == 62
    log = refused(source.format(many + ", int more"))
    assert log == "source(2): error: the kernel f has 65 parameters, and at most 64 parameters are supported"
