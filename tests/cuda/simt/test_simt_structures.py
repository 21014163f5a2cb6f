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
