"""Addresses that are no multiple of what their type asks for: a GPU stops at each, and this machine would not."""

import numpy as np
import pytest

STATEMENTS = {
    "*(double*)(s + 1) = n;": "writes 8 bytes",
    "y[0] = *(long long*)(s + 1);": "reads 8 bytes",
    "y[0] = *(unsigned short*)((char*)s + 1);": "reads 2 bytes",
    "((double2*)(s + 2))[n] = double2(1, 2);": "uses 16 bytes",
    "*(half2*)((half*)s + 1) = half2(1, 2);": "uses 4 bytes",
    "*(Nine*)((char*)s + 4 * n + 2) = Nine();": "writes 4 bytes",
    "Nine nine = *(Nine*)((char*)s + 2); y[0] = nine.v[n];": "uses 4 bytes",
    "Mixed mixed = *(Mixed*)(s + n); y[0] = mixed.b;": "uses 8 bytes",
    "((Mixed*)(s + n))->b = 1;": "uses 8 bytes",
    "y[0] = __ldg((const double*)(s + n));": "reads 8 bytes",
    "double* p = (double*)(s + n); for (int i = 0; i < n; ++i) p[i] = 0;": "writes 8 bytes",
}


@pytest.mark.parametrize("memory", ["extern __shared__ float s[];", "alignas(16) __shared__ float s[64];",
                                    "alignas(16) float s[64];", "float* s = y;"])  # fmt: skip
def test_each_kind_of_access_in_each_memory(run, memory):
    cases = "\n".join(f"if (which == {i}) {{ {statement} }}" for i, statement in enumerate(STATEMENTS))
    source = f"""struct Nine {{ float v[9]; }}; struct Mixed {{ double a; float b; }};
    __global__ void f(float* y, int n, int which) {{
      {memory} for (int i = 0; i < 64; ++i) s[i] = 0;
      {cases}
      y[1] = s[n];
    }}"""
    for which, says in enumerate(STATEMENTS.values()):
        launch = run(source, 1, 1, np.zeros(64, np.float32), 3, which, shared_bytes=256, mode="check")
        assert [(found.kind, found.line) for found in launch.findings] == [("misaligned", 4 + which)]
        what = launch.findings[0].what
        assert says in what and f"has to be a multiple of {says.split()[1]}" in what
        assert "y = y" not in memory or " at y[" in what


def test_accesses_in_pieces_that_are_aligned(run):
    """A GPU makes several accesses of a structure, each at an address that fits."""
    source = """
    struct Two { float a, b; };
    struct Both { Two two; double d; };
    __global__ void f(float* y, int n) {
      __shared__ float s[64];
      __shared__ Both both[2];
      *(Two*)(s + 1) = Two{1, 2};
      Two two = *(Two*)(s + n);
      both[n].d = *(double*)(s + 2 * n) = two.a;
      *(Two*)&both[n].two = two;
      *(float3*)(y + 1) = make_float3(two.a, two.b, both[n].two.b + both[n].d);
      ((double2*)(s + 4))->y = 1;
      memcpy(s + 1, s + 2, 8);
    }"""
    y = np.zeros(4, np.float32)
    assert run(source, 1, 1, y, 1).findings == [] and y.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "statement", ["y[0] = __ldg(s + 70);", "__stcs(s + 70, 1.0f);", "float4 v = *(float4*)(s + 64); y[0] = v.x;"]
)
def test_an_access_in_a_header_has_the_line_of_its_use(run, statement):
    source = f"__global__ void f(float* y) {{\n__shared__ float s[64];\n{statement}\n}}"
    found = run(source, 1, 1, np.zeros(4, np.float32), mode="check").findings
    assert [(one.kind, one.line) for one in found] == [("out of bounds", 3)]
