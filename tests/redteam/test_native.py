"""Attacks in CUDA C++: native code in the jail that wants other counts, another process, or a file."""

import pytest
from redteam.attack import Attack, cases, check, graded

from rooflab.cuda.simt import toolchain

ADD = """
__global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}
"""
# 100 elements in blocks of 32 threads: values, no finding, 4 requests each, 13 sectors, 400 bytes, 100 FLOPs.
TEST = """
from rooflab.grading import measure
x, y = measure.rng().standard_normal((2, 100)).astype("f4")
run = measure.cuda_kernel(gemm(), "add", grid=4, block=32, args=(x, y, 100), seconds=3)
assert not run.findings, run.said
assert np.array_equal(run.args[1], x + 1), "the values"
counts = run.counts
assert counts.global_loads.requests == counts.global_stores.requests == 4, "requests"
assert counts.global_loads.sectors == 13 and counts.bytes_read == counts.bytes_written == 400, "sectors and bytes"
assert counts.flops == 100 and counts.barriers == 0, "FLOPs and barriers"
"""


def kernel(before="", inside="", code=ADD):
    """An answer: the kernel with something before it, and something as its first statements."""
    text = before + code.replace("{\n", "{\n" + inside + "\n", 1)
    return f"def gemm():\n    return {text!r}\n"


def refused(before="", inside="", said="CompileError"):
    return Attack(kernel(before, inside), 0, said, test=TEST, seconds=60)


MORE = "if (threadIdx.x == 0) y[blockIdx.x] = x[n - 1];"  # what the attacks want to hide
NATIVE = {
    # the four of the design
    "no_sanitize": refused('__attribute__((no_sanitize("thread"))) __device__ void g(float* y) { y[0] = 1; }', "g(y);"),
    "assembly": refused("", 'asm volatile("syscall");'),
    "a static constructor": refused("struct A { A() { x = 1; } int x; }; A a;"),
    "over its own stack": refused("", "float a[4]; a[n - 120] = 1; y[0] = a[n - 99];", "outside of its array"),
    # other ways past the checks
    "an attribute of C++": refused("[[gnu::no_sanitize_thread]] __device__ void g() {}"),
    "a pragma for the optimizer": refused('#pragma GCC optimize("no-sanitize=thread")\n'),
    "a pragma within a macro": refused('#define P _Pragma("GCC optimize 3")\nP\n'),
    "a digraph's include": refused('%:include "/etc/passwd"\n'),
    "an include of a file": refused('#include "/etc/passwd"\n'),
    "asks whether a file is there": refused('#if __has_include("/etc/shadow")\n#error yes\n#endif\n'),
    "the C library": refused('extern "C" int system(const char*);\n', 'system("id > /tmp/rooflab_red");'),
    "the C library's own name": refused("", '__builtin_printf("%n", &n);'),
    "a function of the runtime": refused('extern "C" void __tsan_write4(void*);\n', "__tsan_write4(y);"),
    "a name of the runtime": refused('extern "C" void rl_printf(...);\n', "rl_printf(0);"),
    "copies with the compiler's own": refused("", "__builtin_memcpy(y, x, 400);"),
    "where its frame is": refused("", "*(void**)__builtin_frame_address(0) = y;"),
    "a computed goto": refused("", "void* p = (void*)12345; goto *p;"),
    "a function anywhere": refused("", "((void (*)())0x400000)();", "CompileError|crash|address"),
    "a pointer to anywhere": refused("", "*(volatile int*)0x7f0000001000 = 1;", "belongs to no array"),
    "far behind its array": refused("", "y[1ll << 33] = 1;", "line 3"),
    "far before its array": refused("", "y[-(1ll << 20)] = 1;", "line 3"),
    "reads what lies between arrays": refused("", "y[0] = x[120];", "line 3"),
    "too much stack": refused(
        "__device__ float g(int n) { float a[999]; a[n % 9] = n; return n ? g(n - 1) + a[3] : 0; }",
        "y[0] = g(1 << 20);", "stack"),
    "no end": refused("", "while (y[0] == y[0]);", "was not done after 3 s"),
    "a sum that is hidden behind a macro": Attack(
        kernel("#define if(c) if (c && y[i] == y[i])\n"), 0, "requests|bytes|CompileError", test=TEST, seconds=60),
    "its own __launch_bounds__": Attack(kernel("#define __global__ __host__ __global__\n"), 0, "CompileError",
                                        test=TEST, seconds=60),
    "a variable of the thread": refused("thread_local int a = 3;", "a = 4;"),
    "an object that is made late": refused("struct A { A(int n) : x(n) {} int x; };", "static A a(n); y[0] = a.x;"),
    "its own write": refused('extern "C" long write(int, const void*, unsigned long) { return 0; }\n'),
    "the mark of another line": refused('# 1 "/etc/passwd"\n'),
    "an embedded file": refused("const char a[] = {\n#embed </etc/passwd>\n};"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _needs_a_compiler():
    try:
        toolchain.programs()
    except toolchain.NoCompiler as missing:
        pytest.skip(str(missing))


def test_the_kernel_itself_is_right():
    assert graded("q1", kernel(), TEST, 60) == (5, "")


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("attack", cases(NATIVE))
def test_native_code_earns_nothing(attack):
    check(attack)


# Less work for the counters, the same for the memory

COPIES = """
struct Row { float v[25]; };
__global__ void add(const float* x, float* y, int n) {
  if (threadIdx.x == 0) {
    Row row = ((const Row*)x)[blockIdx.x];
    for (int k = 0; k < 25; ++k) row.v[k] += 1;
    ((Row*)y)[blockIdx.x] = row;
  }
}
"""


def test_a_copied_structure_counts_each_of_its_bytes():
    bytes_alone = TEST.partition("assert counts.global_loads.requests")[0] + (
        "assert counts.bytes_read == counts.bytes_written == 400, f'{counts.bytes_read} {counts.bytes_written}'\n"
    )
    assert graded("q1", kernel(code=COPIES), bytes_alone, 60) == (5, "")
    assert graded("q1", kernel(code=COPIES), TEST, 60)[1] == "requests"
