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
