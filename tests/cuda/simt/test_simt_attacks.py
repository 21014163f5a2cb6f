"""Ways around the checks, none of which gets anywhere, and sources that are broken."""

import re
import subprocess

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import assembly, front_end, names, process, toolchain

HIDDEN = '__attribute__((no_sanitize("thread"))) inline void g(float* y) { y[1 << 20] = 1; }'
ROW = "struct Row { float v[25]; };"
ATTACKS = {
    "no_sanitize": '__attribute__((no_sanitize("thread"))) __device__ void g(float* y) { y[1 << 20] = 1; }',
    "no_sanitize by a macro": "#define A __attribute__\nA((no_sanitize)) __device__ void g(float* y) {}",
    "no_sanitize in brackets": "[[gnu::no_sanitize_thread]] __device__ void g(float* y) { y[1 << 20] = 1; }",
    "no_sanitize in hidden brackets": """
        #define L [
        #define IN(x) L x ]
        IN([gnu::no_sanitize_thread]) __device__ void g(float* y) { y[1 << 20] = 1; }""",
    "no_sanitize in brackets apart": "[ /**/ [using gnu: no_sanitize_thread]] __device__ void g(float* y) {}",
    "no_sanitize in digraphs": "<:<:using gnu: noinline:>:> __device__ void g(float* y) {}",
    "a pragma by a digraph": '%:pragma GCC optimize("O0")\n__device__ void g(float* y) {}',
    "joined by a digraph": "#define J(a, b) a%:%:b\n__device__ void g(float* y) {}",
    "optimize": '#pragma GCC optimize("O0")\n__device__ void g(float* y) {}',
    "a pragma in a macro": '#define P _Pragma("GCC optimize 0")\nP __device__ void g(float* y) {}',
    "assembly": '__device__ void g(float* y) { asm("syscall"); }',
    "assembly, spliced": '__device__ void g(float* y) { as\\\nm("syscall"); }',
    "a comment that a blank behind a backslash continues": f"// \\ \n/*\n{HIDDEN}\n// */",
    "a comment that begins on two lines": f"/\\\n/ /*\n{HIDDEN}\n// */",
    "a comment of several lines that begins on two": f"/\\\n* // */ {HIDDEN}",
    "a comment that ends on two lines": f"/* *\\\n/ {HIDDEN} /* */",
    "a carriage return that ends a comment": f"// \r{HIDDEN}",
    "a quote behind a number": f"#define NOT(...)\nNOT(1'/*' // */) {HIDDEN}\n)",
    "a quote behind a letter in a number": f"#define NOT(...)\nNOT(1$'a/*' // */) {HIDDEN}\n)",
    "a quote behind a number of others": f"#define NOT(...)\nNOT(\u0661'a/*') {HIDDEN} /* */",
    "a name on two lines": "#define A [[g\\\nnu::no_sanitize_thread]]\nA __device__ void g(float* y) { y[9] = 1; }",
    "a pragma on two lines": '_Pra\\\ngma("GCC optimize 0") __device__ void g(float* y) {}',
    "what the linker starts": 'extern "C" __device__ void _init() {} __device__ void g(float* y) {}',
    "what the linker ends": 'extern "C" __device__ void _fini() {} __device__ void g(float* y) {}',
    "a structure that is taken from memory": ROW + """
        __device__ float h(Row r, int n) { return n ? h(r, n - 1) : r.v[3]; }
        __device__ void g(float* y) { y[1] = h(*(Row*)y, 2); }""",
    "long double": "__device__ void g(float* y) { long double s = y[0]; s = s * y[1] + y[2]; y[0] = s; }",
    "another attribute behind a word of the headers": """
        #define always_inline no_sanitize("thread"), noinline
        __device__ void g(float* y) { y[1 << 20] = 1; }""",
    "a kernel without checks": "#define noinline always_inline\n__device__ void g(float* y) { y[1 << 20] = 1; }",
    "shared memory that is none": "#define static\n__device__ void g(float* y) { __shared__ float s[9]; s[3] = y[2]; }",
    "a word of CUDA's": "#undef __shared__\n#define __shared__\n__device__ void g(float* y) {}",
    "a name of the linker's": 'extern "C" int h() __asm__("system"); __device__ void g(float* y) { h(); }',
    "a static constructor": """
        struct S { __device__ S() { *(int*)0 = 1; } };
        __device__ S s;
        __device__ void g(float* y) {}""",
    "a static constructor of the host": """
        struct S { S() { *(int*)0 = 1; } };
        S s;
        __device__ void g(float* y) {}""",
    "a static constructor of a constant": """
        struct S { int v; __device__ S() { v = *(int*)8; } };
        __constant__ S s;
        __device__ void g(float* y) {}""",
    "the C library": 'extern "C" int system(const char*);\n__device__ void g(float* y) { system("true"); }',
    "an address as a function": "__device__ void g(float* y) { ((void (*)())12345)(); }",
    "a pointer to a function": """
        __device__ void h(float* y) {}
        __device__ void g(float* y) {
          void (*p)(float*) = h;
          if (y[0] > 3) p = (void (*)(float*))12345;
          p(y);
        }""",
    "a computed goto": "__device__ void g(float* y) { void* p = (void*)12345; goto *p; }",
}  # fmt: skip


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_code_gets_past_the_checks(refused, attack):
    log = refused(f"{ATTACKS[attack]}\n__global__ void f(float* y) {{ g(y); y[0] = 1; }}")
    if attack in ("an address as a function", "a pointer to a function"):
        assert "through a pointer to a function" in log
    if attack == "a structure that is taken from memory":
        assert "take it by reference (const&), or copy it from or to a variable of the thread" in log


def test_a_structure_that_a_call_returns_to_memory_is_checked(run):
    source = (
        ROW
        + """
__device__ Row h(const float* y, int n) { if (n) return h(y, n - 1); Row r; r.v[3] = y[0]; return r; }
__global__ void f(float* y) {
  __shared__ Row s;
  s = h(y, 2);
  *(Row*)y = h(y, 2);
}
"""
    )
    launch = run(source, 1, 1, np.full(25, 3, np.float32))
    assert launch.findings == []
    assert [launch.counts.shared_stores.bytes, launch.counts.global_stores.bytes] == [100, 100]
    assert [(f.kind, f.line) for f in run(source, 1, 1, np.ones(24, np.float32)).findings] == [("out of bounds", 6)]


def test_a_comment_in_a_macro_of_an_option_does_not_hide_the_source():
    with pytest.raises(rl.cuda.CompileError, match="a comment that nothing closes"):
        rl.cuda.compile(
            f"// */ {HIDDEN}\nA\n__global__ void f(float* y) {{ g(y); }}", backend="simt", options=["-DA=/*"]
        )


def test_no_macro_changes_what_the_headers_write_into_a_source():
    """Macros of the headers are used behind the source's first line, so its own would change them."""
    text = "".join(path.read_text(encoding="utf-8") for path in names.HEADERS.glob("*.h")).replace("\\\n", " ")
    bodies = re.findall(r"^#define ((?:__|rl_|RL_(?:NO_)?KERNEL)\w*(?:\([^)]*\))?.*)", text, re.MULTILINE)
    words = set(re.findall(r"\b[a-zA-Z_]\w*", re.sub(r'"[^"]*"', "", " ".join(bodies)))) - {
        "NUMBER",
        "BOUND",
        "TYPE",
        "bytes",
        "pointer",
    }
    assert {"always_inline", "arguments", "static"} <= words
    for word in words:
        with pytest.raises(front_end.Refused):
            front_end.translate("__global__ void f() {}", [f"{word}=1"])


def test_continued_lines_and_letters_in_comments_are_as_everywhere(run):
    source = (
        ROW
        + """
#define TWICE(v) \\
  ((v) \\
   + (v))
// é ² ß don't \\
here neither
__device__ Row h(const float* y, int n) { if (n) return h(y, n - 1); Row r; r.v[3] = y[0]; return r; }
__device__ float k(Row r, int n) { return n ? k(r, n - 1) : r.v[3]; }
struct Two { Row a, b; };
__global__ void f(float* y) {
  Two own;
  own.b = h(y, 2);
  y[0] = TWICE(k(own.b, 1));
  y[1] = fdimf(y[0], -1.0f);
}
"""
    )
    y = np.full(2, 3, np.float32)
    launch = run(source, 1, 1, y, mode="count")
    assert y.tolist() == [6, 7] and launch.counts.flops == 2 and not launch.findings
    assert [launch.counts.global_loads.requests, launch.counts.global_stores.requests] == [1, 2]
    with pytest.raises(rl.cuda.CompileError) as error:
        rl.cuda.compile(source.replace("y[1] =", "y[1] = zz +"), backend="simt")
    assert error.value.log.startswith("source(14): error: 'zz'")


STACK = """
__device__ void put(float* p, int at, float v) { p[at] = v; }
__global__ void f(float* y, int first, int last, int step) {
  float a[4];
  float* p = y[0] > 1e30f ? y : a;
  a[0] = 1;
  for (int i = first; i != last; i += step) STORE
  y[0] = a[0] + a[3];
}
"""


@pytest.mark.parametrize("store", ["p[i] = 1e9f;", "put(a, i, 1e9f);", "a[i] = 1e9f;", "(&a[0])[i] = 1e9f;",
                                   "*(int*)((char*)a + 4 * i) = 7;"])  # fmt: skip
@pytest.mark.parametrize(("first", "last", "step"), [(0, 4000, 1), (0, -4000, -1), (4, 4000, 1), (6, 60, 1)])
def test_a_write_over_the_own_stack_goes_nowhere(run, store, first, last, step):
    y = np.zeros(4, np.float32)
    launch = run(STACK.replace("STORE", store), 1, 1, y, first, last, step)
    found = launch.findings[0]
    # Below its array a thread can reach its own other variables, and is stopped at what it then does with them.
    assert found.kind == "out of bounds" or (first > last and found.kind in ("misaligned", "endless"))
    assert len(launch.findings) == 1 and y[0] == 0


def test_a_frame_is_not_written_at_all(run):
    y = np.zeros(4, np.float32)
    source = STACK.replace("STORE", "p[i] = 1e9f;")
    found = [[f.kind for f in run(source, 1, 1, y, i, i + 1, 1).findings] for i in range(4, 40)]
    assert ["out of bounds"] in found and ["stack overwritten"] not in found


STACKS = """
__device__ float peek(float* mine, int n) {
  if (n) return peek(mine, n - 1);  // never: a function that calls itself has a frame of its own
  volatile float far[125000];
  int at = (mine - (float*)far) - 20480;  // in another thread's stack, which is 80 KB below
  far[at] += 3;
  return far[at];
}
__global__ void f(float* y) {
  volatile float own[4];
  own[0] = threadIdx.x + 1;
  y[threadIdx.x] = threadIdx.x > 6 ? peek((float*)own, 0) : own[0];
}
"""


@pytest.mark.parametrize("mode", ["check", "functional"])
def test_a_large_frame_does_not_reach_the_stacks_of_other_threads(run, mode):
    assert [f.kind for f in run(STACKS, 1, 8, np.zeros(8, np.float32), mode=mode).findings] == ["stack overflow"]


def test_what_lies_below_the_own_stack_is_no_variable(run, monkeypatch):
    """As if the compiler let a frame jump over the page below a stack."""
    kept = [flag for flag in toolchain._KERNEL_FLAGS if "clash" not in flag]
    monkeypatch.setattr(toolchain, "_KERNEL_FLAGS", kept)
    monkeypatch.setattr(toolchain, "wild_locals", list)
    assert [f.kind for f in run(STACKS, 1, 8, np.zeros(8, np.float32)).findings] == ["out of bounds"]


def test_the_stack_tells_no_addresses_of_code(run):
    source = """
    __global__ void f(unsigned long long* y, int n) {
      unsigned long long a[2] = {1, 2};
      unsigned long long* p = y[0] > 5 ? y : a;
      unsigned long long sum = 0;
      for (int i = 0; i < n; ++i) sum += p[i];
      y[1] = sum;
    }"""
    assert run(source, 1, 1, np.zeros(2, np.uint64), 2).findings == []
    assert [f.kind for f in run(source, 1, 1, np.zeros(2, np.uint64), 500).findings] == ["out of bounds"]


STORES = {
    "a bit field": "struct B { int a : 3, b : 5; }; ((B*)y)[n].b = n;",
    "a structure": "struct Big { float v[100]; } big = {}; big.v[7] = n; *(Big*)(y + n) = big;",
    "a structure of three": "struct T { char a; short b; int c; } t = {1, 2, 3}; ((T*)y)[n] = t;",
    "a vector": "((float4*)y)[n] = make_float4(1, 2, 3, n);",
    "a long double": "((long double*)y)[n] = n;",
    "a volatile": "((volatile int*)y)[n] = 1;",
    "a byte": "((bool*)y)[4 * n] = n > 3;",
    "a result": "struct R { double v[9]; }; auto make = [&]() { return R{{1.0 * n}}; }; ((R*)y)[n] = make();",
    "by reference": "auto set = [&](float& x) { x = n; }; set(y[n]);",
    "zeros": "struct Z { float v[64]; }; ((Z*)y)[n] = Z{};",
    "an atomic operation": "atomicCAS((int*)y + n, 1, 2);",
    "memset": "memset(y + n, 1, 64);",
    "memcpy": "memcpy(y + n, y, 4);",
    "a loop that looks like memset": "for (int i = 0; i < 8; ++i) y[n + i] = 0;",
    "a loop that looks like memcpy": "for (int i = 0; i < 4; ++i) y[n + i] = y[i];",
    "a swap": "float a = y[0]; y[0] = y[n]; y[n] = a;",
}


@pytest.mark.slow(but_every=2)
@pytest.mark.parametrize("store", STORES, ids=str)
def test_every_kind_of_store_is_checked(run, store):
    source = f"__global__ void f(float* y, int n) {{\n{STORES[store]}\n}}"
    found = run(source, 1, 1, np.zeros(16, np.float32), 1 << 20, mode="check").findings
    assert [f.kind for f in found] == ["out of bounds"] and found[0].line == 2


def test_a_function_that_ends_without_its_value(run):
    source = "__device__ int g(int n) {\n  if (n > 5) return 1;\n}\n__global__ void f(int* y, int n) { y[0] = g(n); }"
    y = np.zeros(1, np.int32)
    assert [f.kind for f in run(source, 1, 1, y, 3).findings] == ["no value"]
    assert run(source, 1, 1, y, 6).findings == [] and y[0] == 1


def test_a_return_address_that_was_changed_is_noticed_before_it_is_used(run, monkeypatch):
    """As if a store had got past the checks: the frame is compared when the function ends."""
    real = assembly.complete

    def without_stores(text, *more):
        made = real(text, *more)
        made.text = re.sub(r"\tmovl\t\$\d+, %esi\n\tcall\t__tsan_write4@PLT\n", "", made.text)
        made.text = re.sub(r"\tcall\t__ubsan\w+@PLT\n", "", made.text)
        return made

    monkeypatch.setattr(toolchain, "complete", without_stores)
    monkeypatch.setattr(toolchain, "_KERNEL_FLAGS", [*toolchain._KERNEL_FLAGS, "-DNOT_FROM_THE_CACHE"])
    source, y = STACK.replace("STORE", "p[i] = 1e9f;"), np.zeros(4, np.float32)
    found = [[f.kind for f in run(source, 1, 1, y, i, i + 1, 1).findings] for i in range(4, 40)]
    assert ["stack overwritten"] in found


def test_nothing_outside_of_the_kernels_memory_can_be_written(run):
    """Its own code, its table of functions, and the runner's memory behind an address that it can read."""
    source = """
    __global__ void f(unsigned long long* y, unsigned long long at) { *(unsigned long long*)at = 7; y[0] = 1; }"""
    for at in (0x400000, 0x7FFFFFFFE000, 1 << 47, (1 << 64) - 8, 8):
        for text in (
            source,
            source.replace("*(unsigned long long*)at = 7; y[0] = 1", "y[0] = *(unsigned long long*)at"),
        ):
            found = run(text, 1, 1, np.zeros(1, np.uint64), at).findings
            assert [f.kind for f in found] == ["out of bounds"]
    found = run('__global__ void f(float* y) { ((char*)"text")[0] = 1; y[0] = 1; }', 1, 1, np.zeros(1, np.float32))
    assert found.findings[0].kind in ("out of bounds", "crash")  # a constant lies in memory that is read-only


@pytest.mark.parametrize("format_", ["%n", "%s%s%s%s", "%*d", "%99999999d", "%", "%lln %hhn"])
def test_a_format_cannot_read_or_write(run, format_):
    y = np.zeros(4, np.float32)
    launch = run(f'__global__ void f(float* y) {{ printf("{format_}", y, y, y); y[0] = 1; }}', 1, 1, y)
    assert launch.findings == [] and y[0] == 1


@pytest.mark.parametrize(
    "records",
    [[1 << 63 | 99 << 56], [0x7FFFFFFFFFFFFFFF], [1 << 63 | 2 << 56 | (1 << 20)], [1 << 63 | 1 << 56 | 99999, 3 << 34],
     [1 << 61 | (1 << 33)]],
)  # fmt: skip
def test_the_accountant_survives_records_that_make_no_sense(records):
    request = process.Request((1, 1, 1), (32, 1, 1), 0, "count", 0, "in order", 0, 0, [], [])
    with process.shared_file(process._RING_BYTES) as (ring, memory):
        packed = request.packed(5)
        memory[: len(packed)] = packed
        memory[8192 : 8192 + 8 * len(records)] = np.array(records, np.uint64).tobytes()
        memory[6784:6792] = len(records).to_bytes(8, "little")
        memory[process._CLOSED_AT] = 1
        done = subprocess.run(
            [toolchain.programs()[1], str(ring)], pass_fds=[ring], capture_output=True, text=True, timeout=20
        )
    assert done.returncode == 0 and done.stdout.startswith("launch ")
    assert " 16 " in done.stdout or done.stdout.startswith("launch 0")


def test_the_layout_that_python_writes_is_the_headers(tmp_path):
    source = tmp_path / "layout.cpp"
    source.write_text(
        '#include "protocol.h"\n#include <cstdio>\nint main() { using namespace simt; std::printf("%zu %zu %zu", '
        "offsetof(Ring, closed), sizeof(Ring), sizeof(Launch)); }",
        encoding="utf-8",
    )
    command = [
        toolchain.compiler(),
        str(source),
        f"-I{toolchain.RUNTIME}",
        "-Wno-invalid-offsetof",
        "-o",
        tmp_path / "a",
    ]
    subprocess.run(command, check=True)
    made = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True).stdout.split()
    request = process.Request((1, 1, 1), (1, 1, 1), 0, "check", 0, "in order", 0, 0, [], [])
    assert [int(number) for number in made] == [process._CLOSED_AT, process._RING_BYTES, len(request.packed(0))]


FRAGMENTS = """
#define N 4
namespace n { struct S { float x; __device__ S() {} }; }
__constant__ float c[N] = {1, 2};
extern __shared__ __align__(16) float s[];
template <int D> __global__ void __launch_bounds__(32) g(float* x) {
  __shared__ float t[D], u;
  static constexpr int k = 1;
}
template __global__ void g<3>(float*);
"""


def test_broken_sources_are_refused_and_nothing_else():
    """Words of a kernel left out, doubled and replaced: what comes back is a translation or a refusal."""
    random = np.random.default_rng(5)
    words = re.findall(r"\w+|\s+|.", STACK + FRAGMENTS)
    others = ["", *'{}()[];<#"\\', "extern", "__shared__", "static", "template", "void"]
    outcomes = set()
    for _ in range(300):
        changed = list(words)
        for at in random.integers(0, len(words), 3):
            changed[at] = str(random.choice(others))
        try:
            front_end.translate("".join(changed), [])
            outcomes.add("translated")
        except front_end.Refused as refusal:
            line, what = refusal.args
            assert isinstance(line, int) and what
            outcomes.add("refused")
    assert outcomes == {"translated", "refused"}
