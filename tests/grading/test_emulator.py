"""CUDA kernels of independent threads run without a GPU: values, faults with their thread, and what is unsupported."""

import numpy as np
import pytest

from rooflab.grading.emulator import expressions
from rooflab.grading.emulator.emulate import EmulatedFault, Unsupported, emulate


def value_of(expression, before="", x=2.5, n=7, kind="float", more=""):
    """What `out[0] = expression` writes, in a kernel with a float x and an int n."""
    source = f"{more} __global__ void k({kind}* out, float x, int n) {{ {before} out[0] = {expression}; }}"
    return emulate(source, "k", (1,), (1,), (np.zeros(1, {"float": "f4", "double": "f8", "int": "i4"}[kind]), x, n))[0][
        0
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3 - 4 / 3", 6), ("(1 + 2) * 3", 9), ("-7 / 2", -3), ("-7 % 3", -1), ("7 / 2 * 2.0f", 6),
        ("7 / 2.0f", 3.5), ("n > 3 ? 10 : 20", 10), ("n < 3 ? 10 : n < 8 ? 30 : 40", 30), ("!n + !0", 1),
        ("1 << 4 | 3", 19),
        ("6 & 3 ^ 1", 3), ("n >= 7 && x != 2.5f || n == 7", 1), ("(int)x + 0.5f", 2.5), ("static_cast<int>(-2.7f)", -2),
        ("float(n) / 2", 3.5), ("0x1F", 31), ("1e2f + .5f", 100.5), ("min(n, 3) + max(n, 3)", 10),
        ("fminf(x, 1.0f) + fmaxf(x, 3.0f)", 4), ("sqrtf(16.0f)", 4), ("fabsf(-x)", 2.5), ("powf(2.0f, 10.0f)", 1024),
        ("(float)blockDim.x + gridDim.y", 2), ("n - -2", 9), ("+n", 7), ("5000000000LL / 5000000", 1000),
        ("(x > 0.0f) - (x < 0.0f)", 1), ("(x > 0.0f) + (x > 1.0f)", 2),
        ("(4611686018427387904 * 2 < 0) + (1 << 64)", 2),
    ],
)  # fmt: skip
def test_expressions_are_those_of_c(expression, expected):
    assert value_of(expression, kind="double") == expected


def test_floats_are_of_32_bits_and_doubles_of_64():
    assert value_of("0.1f + 0.2f", kind="double") == np.float32(0.1) + np.float32(0.2)
    assert value_of("0.1 + 0.2", kind="double") == 0.1 + 0.2
    assert value_of("y", "float y = 0.1;", kind="double") == np.float32(0.1)
    assert value_of("tanhf(x)", kind="double") == np.tanh(np.float32(2.5)) != value_of("tanh((double)x)", kind="double")


@pytest.mark.parametrize(
    ("before", "expression", "expected"),
    [
        ("int s = 0; for (int i = 0; i < n; ++i) s += i;", "s", 21),
        ("int s = 0; for (int i = 0; i < n; i += 2) { if (i == 4) continue; s += i; }", "s", 8),
        ("int s = 1; while (true) { s *= 2; if (s > 50) break; }", "s", 64),
        ("int i = 3, j = i++; int k = ++i;", "100 * i + 10 * j + k", 535),
        ("int i = 3; { int i = 4; i = 5; } i -= 1;", "i", 2),
        ("float y = x; y /= 2; y *= y; const auto z = y;", "z", 1.5625),
        ("int a, b; a = b = 4;", "a + b", 8),
        ("int i = 0; for (;;) { if (++i == 9) break; }", "i", 9),
        ("unsigned int i = 5u; size_t j = i; if (i > 4) j = 6; else j = 7;", "j", 6),
    ],
)
def test_statements(before, expression, expected):
    assert value_of(expression, before) == expected


def test_functions_and_constants():
    more = "constexpr float kTwo = 2.0f; __device__ float twice(float v) { return kTwo * v; }"
    assert value_of("twice(x) + twice(twice(1))", more=more) == 9
    more = "__device__ int factorial(int n) { if (n < 2) return 1; return n * factorial(n - 1); }"
    assert value_of("factorial(5)", more=more) == 120


def test_threads_of_all_blocks_run_and_pointers_move():
    source = """
    // a comment
    extern "C" __global__ void scale(const float* __restrict__ x, float* y, int rows, int columns) {
      const int row = blockIdx.y * blockDim.y + threadIdx.y;
      x += row * columns; /* the row */
      float* out = y + row * columns;
      for (int c = threadIdx.x; c < columns; c += blockDim.x) out[c] = (row < rows) ? *(x + c) * row : -1;
    }"""
    x = np.arange(12, dtype="f4").reshape(4, 3)
    given, out = emulate(source, "scale", (1, 2), (2, 2), (x, np.zeros((4, 3), "f4"), 4, 3))[:2]
    np.testing.assert_array_equal(out, x * np.arange(4)[:, None])
    np.testing.assert_array_equal(given, x)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if (threadIdx.x == 2) x[5] = 1;", r"Thread 2 of block 1 writes x\[5\], which has 5 elements"),
        ("float y = x[-1];", r"Thread 0 of block 0 reads x\[-1\]"),
        ("while (true) {}", "does not end"),
        ("int i = n / 0;", "divides by zero"),
        ("int i; x[0] = i;", "uses i before it has a value"),
        (
            "int i = 1.0f / 0.0f;",
            "Thread 0 of block 0 computes something that has no value: cannot convert float infinity",
        ),
        ("x * 2;", "computes something that has no value"),
    ],
)
def test_faults_say_where(body, said, monkeypatch):
    monkeypatch.setattr(expressions, "MOST_STEPS", 1000)
    source = f"__global__ void k(float* x, int n) {{ if (blockIdx.x == 0 && n == 9) return; {body} }}"
    with pytest.raises(EmulatedFault, match=said):
        emulate(source, "k", (2,), (4,), (np.zeros(5, "f4"), 9 if "threadIdx" in body else 0))


def test_threads_that_do_nothing_end_too(monkeypatch):
    monkeypatch.setattr(expressions, "MOST_STEPS", 1000)
    with pytest.raises(EmulatedFault, match="does not end"):
        emulate("__global__ void k(float* x) {}", "k", (2000,), (1,), (np.zeros(1),))


def test_a_transposed_array_is_written():
    x = np.zeros((2, 3), "f4").T
    out = emulate("__global__ void k(float* x) { *(1 + x) = 5; }", "k", (1,), (1,), (x,))[0]
    assert out.tolist() == [[0, 5], [0, 0], [0, 0]]


def test_what_never_returns_is_a_fault():
    more = "__device__ int f(int n) { return f(n + 1); }"
    with pytest.raises(EmulatedFault, match="calls itself too often"):
        value_of("f(0)", more=more)


def test_a_constant_that_cannot_be_computed_is_not_known():
    for constant in ("1 / 0", "threadIdx.x", "(int)(1.0 / 0.0)"):
        with pytest.raises(Unsupported, match="one of its constants cannot be computed"):
            value_of("x", more=f"const int n = {constant};")


@pytest.mark.parametrize(
    "body",
    ["__shared__ float s[32];", "__syncthreads();", "x[0] = y;", "x[0] = 1", "float v[4];", "n[0] = 1;", "3 = n;",
     "@", "atomicAdd(x, 1.0f);", "int i = threadIdx.w;", "(" * 3000, "goto end;", "x[0] = sqrtg(1.0f);",
     "x[0] = x[0] % 2;"],
)  # fmt: skip
def test_what_is_not_known_is_said(body):
    with pytest.raises(Unsupported):
        emulate(f"__global__ void k(float* x, int n) {{ {body} }}", "k", (1,), (1,), (np.zeros(4, "f4"), 1))


def test_the_kernel_and_its_arguments_have_to_be_there():
    source = "__device__ void f(int n) {} __global__ void k(float* x) {}"
    for name in ("f", "other"):
        with pytest.raises(KeyError):
            emulate(source, name, (1,), (1,), (1,))
    with pytest.raises(ValueError, match="expected 1, got 2"):
        emulate(source, "k", (1,), (1,), (np.zeros(1), 1))
