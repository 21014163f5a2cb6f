"""What is not run: by name, with its line; and ways around the checks, none of which gets anywhere."""

import re
import subprocess

import numpy as np
import pytest

import rooflab as rl
from rooflab.cuda.simt import assembly, front_end, process, toolchain


def refused(source):
    with pytest.raises(rl.cuda.CompileError) as error:
        rl.cuda.compile(source, backend="simt")
    return error.value.log


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ('asm volatile("mov.u32 %0, 1;" : "=r"(n));', "inline PTX"),
        ('__asm__("nop");', "inline PTX"),
        ("y[0] = tex2D<float>(t, 0, 0);", "tex2D"),
        ("cudaTextureObject_t t;", "textures"),
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
        ("#line 7", "#line"),
        ("#define JOIN(a, b) a##b", "joining of tokens"),
        ("int \\u0061 = 0;", "not C++ that is known"),
        ('const char* s = R"(x)";', "not C++ that is known"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(statement, what):
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
        ("__global__ void __cluster_dims__(2) f() {}", 1, "clusters"),
        ("__global__ int f() { return 1; }", 1, "void return type"),
        ("\n\n__global__ void f(float* x) {\n  x[0] = z;\n}", 4, "'z' was not declared"),
        ("__global__ void f(float* x) {\n  x[0] = 1\n}", 2, "expected ';'"),
        ("__device__ int f() { return 1; }", 0, "there is no kernel"),
        ("__global__ void f(float* x) {}\n__global__ void f(int* x) {}", 2, "overloads are not supported"),
        ("__global__ void f(float* x, int n) {\nfloat a[n]; x[0] = a[0];\n}", 2, "variable length"),
        ("__global__ void f(float* x) { __shared__ float t[1 << 16]; x[0] = t[threadIdx.x]; }", 0, "too much shared"),
        ("__global__ void f(float* x) {\nextern float g(float); x[0] = g(1);\n}", 0, "a call of _Z1gf is not"),
        ("__global__ void f() {", 1, "nothing closes"),
        ("#define K(f) __global__ void f() {}\nK(g)", 0, "one that a macro makes is not found"),
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
def test_sources_that_are_no_kernels(source, line, what):
    log = refused(source)
    assert re.search(what, log) and (line == 0 or f"source({line}): " in log)


# --- around the checks ---

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
    "a structure that is returned to memory": ROW + """
        __device__ Row h(float* y, int n) { if (n) return h(y, n - 1); Row r; r.v[3] = y[5]; return r; }
        __device__ void g(float* y) { *(Row*)y = h(y, 2); }""",
    "a structure that is returned to shared memory": ROW + """
        __device__ Row h(float* y, int n) { if (n) return h(y, n - 1); Row r; r.v[3] = y[5]; return r; }
        __device__ void g(float* y) { __shared__ Row s; s = h(y, 2); y[1] = s.v[3]; }""",
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


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_no_code_gets_past_the_checks(attack):
    log = refused(f"{ATTACKS[attack]}\n__global__ void f(float* y) {{ g(y); y[0] = 1; }}")
    if attack in ("an address as a function", "a pointer to a function"):
        assert "through a pointer to a function" in log


def test_a_comment_in_a_macro_of_an_option_does_not_hide_the_source():
    with pytest.raises(rl.cuda.CompileError, match="a comment that nothing closes"):
        rl.cuda.compile(
            f"// */ {HIDDEN}\nA\n__global__ void f(float* y) {{ g(y); }}", backend="simt", options=["-DA=/*"]
        )


def test_no_macro_changes_what_the_headers_write_into_a_source():
    """Macros of the headers are used behind the source's first line, so its own would change them."""
    text = "".join(path.read_text(encoding="utf-8") for path in front_end.HEADERS.glob("*.h")).replace("\\\n", " ")
    bodies = re.findall(r"^#define ((?:__|rl_|RL_(?:NO_)?KERNEL)\w*(?:\([^)]*\))?.*)", text, re.MULTILINE)
    words = set(re.findall(r"\b[a-zA-Z_]\w*", re.sub(r'"[^"]*"', "", " ".join(bodies)))) - {"NUMBER", "TYPE", "bytes"}
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

    def without_stores(text):
        made = real(text)
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
        found = run(source, 1, 1, np.zeros(1, np.uint64), at).findings
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


def test_kernels_are_found_without_a_compiler():
    source = """
    namespace a { namespace b { __global__ void first(float* x = nullptr); __global__ void first(float* x) {} } }
    template <int N> __global__ void second(int* x) {}
    template __global__ void second<3 + 1>(int*);
    extern "C" { __global__ void __launch_bounds__(32, 2) third(const int (*x)[3]) {} }
    """
    assert front_end.translate(source, []).kernels == ["a::b::first", "second<3+1>", "third"]


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
