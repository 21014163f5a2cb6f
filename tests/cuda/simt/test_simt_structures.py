"""A structure that is copied whole goes in pieces of its alignment, as the compiler of a GPU loads and stores it."""

import numpy as np
import pytest

DECLARED = {
    "four floats": ("struct S { float x, y, z, w; };", 16, 4),
    "aligned to 16": ("struct alignas(16) S { float x, y, z, w; };", 16, 16),
    "float4": ("using S = float4;", 16, 16),
    "a complex number": ("struct S { float re, im; };", 8, 4),
    "float2": ("using S = float2;", 8, 8),
    "aligned to 8": ("struct alignas(8) S { float re, im; };", 8, 8),
    "float3": ("using S = float3;", 12, 4),
    "uchar3": ("using S = uchar3;", 3, 1),
    "a pixel": ("struct S { unsigned char r, g, b; };", 3, 1),
    "two shorts": ("struct S { short a, b; };", 4, 2),
    "doubles": ("struct S { double x, y, z; };", 24, 8),
    "one half": ("#include <cuda_fp16.h>\nusing S = half;", 2, 2),
    "eight halves": ("#include <cuda_fp16.h>\nstruct alignas(16) S { half v[8]; };", 16, 16),
    "four bfloat16": ("#include <cuda_bf16.h>\nstruct alignas(8) S { __nv_bfloat16 v[4]; };", 8, 8),
    "an array": ("struct S { float v[5]; };", 20, 4),
    "six floats": ("struct S { float v[6]; };", 24, 4),
    "eight floats": ("struct S { float v[8]; };", 32, 4),
    "eight floats aligned to 16": ("struct alignas(16) S { float v[8]; };", 32, 16),
    "eight floats aligned to 32": ("struct alignas(32) S { float v[8]; };", 32, 16),
    "four floats aligned to 8": ("struct alignas(8) S { float v[4]; };", 16, 8),
    "two doubles": ("struct S { double re, im; };", 16, 8),
    "sixteen characters": ("struct S { char v[16]; };", 16, 1),
    "four shorts": ("struct S { short v[4]; };", 8, 2),
    "sixteen shorts": ("struct S { short v[16]; };", 32, 2),
    "a name for one without": ("typedef struct { float v[6]; } S;", 24, 4),
    "a template": ("template <class T, int N> struct V { T v[N]; };\nusing S = V<float, 6>;", 24, 4),
    "within a namespace": ("namespace n { struct P { short v[12]; }; }\nusing n::P;\nusing S = P;", 24, 2),
    # Of one name in two namespaces the compiler's list does not say which it is, so the size decides.
    "one of two": (
        "namespace a { struct P { float v[4]; }; }\nnamespace b { struct P { short v[8]; }; }\nusing S = a::P;",
        16,
        4,
    ),
    "double3": ("using S = double3;", 24, 8),
    "many floats": ("struct S { float v[64]; };", 256, 4),
}


@pytest.mark.parametrize("name", DECLARED)
def test_pieces_of_a_copy_in_global_memory(run, name):
    declared, size, piece = DECLARED[name]
    source = f"""
    {declared}
    __global__ void f(const unsigned char* x, unsigned char* y, int first) {{
      ((S*)y)[threadIdx.x] = ((const S*)x)[threadIdx.x + first];
    }}"""
    x = np.arange(size * 33, dtype=np.uint8)
    for first in (0, 1):  # an address that allows wider pieces makes no difference
        y = np.zeros(size * 32, np.uint8)
        launch = run(source, 1, 32, x, y, first)
        assert launch.findings == [] and (y == x[first * size : (first + 32) * size]).all()
        for access in (launch.counts.global_loads, launch.counts.global_stores):
            assert (access.requests, access.bytes) == (size // piece, 32 * size)
        lines = {(first * size + size * i + at) // 32 for at in range(0, size, piece) for i in range(32)}
        assert launch.counts.global_loads.sectors >= len(lines)


@pytest.mark.parametrize("name", ["aligned to 16", "four floats", "aligned to 8", "a complex number", "four bfloat16"])
def test_pieces_of_a_copy_through_variables(run, name):
    """In a source with an alignment, also where members are set and a function takes and returns the variable."""
    declared, size, piece = DECLARED[name]
    source = f"""
    struct alignas(8) Other {{ float a, b; }};
    {declared}
    __device__ S same(S s) {{ s = s; return s; }}
    __global__ void f(const unsigned char* x, unsigned char* y) {{
      __shared__ S kept[32];
      int t = threadIdx.x;
      S v = ((const S*)x)[t];
      ((unsigned char&)v)++;
      kept[t] = v;
      __syncthreads();
      S w = same(kept[31 - t]);
      ((unsigned char&)w)++;
      ((S*)y)[t] = w;
    }}"""
    y = np.zeros(size * 32, np.uint8)
    launch = run(source, 1, 32, np.zeros(size * 32, np.uint8), y)
    counts = launch.counts
    assert launch.findings == [] and y.tolist() == ([2] + [0] * (size - 1)) * 32
    for access in (counts.global_loads, counts.global_stores, counts.shared_loads, counts.shared_stores):
        assert (access.requests, access.bytes) == (size // piece, 32 * size)


def test_members_of_an_aligned_structure_through_a_variable(run):
    """nvcc loads and stores it as one, and the banks do not meet."""
    source = """
    struct __align__(8) C { float r, i; };
    __device__ C times(C a, C b) { return C{a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r}; }
    __global__ void f(const C* x, C* y) {
      __shared__ C s[32];
      int t = threadIdx.x;
      C v = x[t];
      v.r *= 2;
      s[t] = v;
      __syncthreads();
      C u = s[31 - t];
      u.i += 1;
      y[t] = times(u, v);
    }"""
    x, y = np.arange(32, dtype=np.complex64) * (1 + 1j), np.zeros(32, np.complex64)
    counts = run(source, 1, 32, x.view(np.float32), y.view(np.float32)).counts
    v = 2 * x.real + 1j * x.imag
    assert (y == (v[::-1] + 1j) * v).all() and counts.bank_conflicts == 0
    for access in (counts.global_loads, counts.global_stores, counts.shared_loads, counts.shared_stores):
        assert (access.requests, access.bytes) == (1, 256)


@pytest.mark.parametrize(("first", "more"), [("float", ""), ("float4", ".x")])
def test_memcpy_and_memset_are_byte_by_byte(run, first, more):
    """As nvcc makes them: it knows no alignment of a void*."""
    source = f"""
    __global__ void f(const {first}* x, {first}* y) {{
      {first} v[16 / sizeof({first})];
      memcpy(v, x + threadIdx.x * (16 / sizeof({first})), 16);
      v[0]{more} += 1;
      memcpy(y + threadIdx.x * (16 / sizeof({first})), v, 16);
      memset(y + (threadIdx.x + 32) * (16 / sizeof({first})), 1, 12);
    }}"""
    x, y = np.arange(128, dtype=np.float32), np.zeros(256, np.float32)
    launch = run(source, 1, 32, x, y)
    assert launch.findings == [] and y[:128].tolist() == [i + (i % 4 == 0) for i in range(128)]
    loads, stores = launch.counts.global_loads, launch.counts.global_stores
    assert [loads.requests, loads.bytes, stores.requests, stores.bytes] == [16, 512, 28, 896]
    assert loads.sectors == 16 * 16


@pytest.mark.parametrize(
    ("declared", "wavefronts", "ideal"),
    [("using S = float3;", 3, 3), ("struct S { float m, l; };", 4, 2), ("using S = float2;", 2, 2)],
)
def test_pieces_meet_in_banks(run, declared, wavefronts, ideal):
    source = f"""
    {declared}
    __global__ void f(float* y) {{
      __shared__ S s[32];
      ((float*)s)[threadIdx.x] = 1; ((float*)s)[threadIdx.x + 32] = 1;
      if (sizeof(S) == 12) ((float*)s)[threadIdx.x + 64] = 1;
      __syncthreads();
      S one = s[31 - threadIdx.x];
      ((S*)y)[threadIdx.x] = one;
    }}"""
    loads = run(source, 1, 32, np.zeros(96, np.float32)).counts.shared_loads
    assert (loads.wavefronts, loads.ideal_wavefronts) == (wavefronts, ideal)


def test_pieces_of_places_of_all_kinds(run):
    """A member, an element of an array of two dimensions, of dynamic shared memory, a variable, references."""
    source = """
    struct E { float v[6]; };
    struct H { float first; E e[4]; };
    __device__ E kept;
    __device__ void copy(E& to, const E& from) { to = from; }
    __global__ void f(H* h, E* e, float* y) {
      struct Other { short v[12]; };  // of the same size
      extern __shared__ E d[];
      h[1].e[2] = e[1];
      kept = e[2];
      e[3] = kept;
      copy(e[4], h->e[1]);
      d[threadIdx.x] = e[5];
      h[2].e[3] = h[1].e[0];
      ((Other*)e)[6] = ((Other*)e)[7];
      y[0] = d[0].v[5];
    }"""
    h, e, y = np.zeros(75, np.float32), np.arange(48, dtype=np.float32), np.zeros(1, np.float32)
    launch = run(source, 1, 1, h, e, y, shared_bytes=24)
    assert launch.findings == [] and y[0] == 35
    requests = {line: (c.global_loads.requests, c.global_stores.requests) for line, c in launch.lines.items()}
    assert requests[9] == requests[10] == requests[11] == requests[14] == (6, 6)
    assert requests[13] == (6, 0) and requests[15] == (12, 12)
