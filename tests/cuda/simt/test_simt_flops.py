"""FLOPs of kernels, each worked out by hand: which arithmetic counts."""

import numpy as np
import pytest

import rooflab as rl


@pytest.mark.parametrize("type_", ["half", "__nv_bfloat16"])
def test_sixteen_bits(run, type_):
    source = f"""
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void f(const {type_}* x, {type_}* y) {{ y[threadIdx.x] = x[threadIdx.x] * x[threadIdx.x]; }}"""
    dtype = "float16" if type_ == "half" else "bfloat16"
    x, y = rl.tensor([0.5 * i for i in range(32)], dtype=dtype), rl.zeros(32, dtype=dtype)
    counts = run(source, 1, 32, x, y).counts
    assert y.tolist() == (x * x).tolist()
    assert (counts.global_loads.sectors, counts.global_stores.bytes, counts.flops) == (2, 64, 32)


@pytest.mark.parametrize(
    ("expression", "flops"),
    [
        ("normcdff(x)", 0), ("sinpif(x)", 0), ("rnorm3df(x, w, x)", 0), ("modff(x, &w)", 0), ("rsqrtf(x)", 0),
        ("x / 3", 0), ("exp10f(x)", 0), ("fdim(x, w)", 1),
        ("x / 2", 1), ("__fadd_rn(x, w)", 1), ("fmaf(x, w, x)", 2),
        ("__half2float(__hfma(half(x), half(w), half(x)))", 2),
        # As nvcc, the compiler simplifies an expression and keeps the order of its sums.
        ("2.0f * 3.0f * x", 1), ("x * 2.0f * 3.0f", 2), ("(x + w) * (x + w)", 2), ("x * 1.0f", 0), ("x + 0.0f", 1),
        ("x + w + 1.0f + 2.0f", 3), ("x * w + x * w", 2), ("x > w ? x * w : x + w + 1.0f", 2),
    ],
)  # fmt: skip
def test_flops_of_functions(run, expression, flops):
    source = f"__global__ void f(float* y, float x, float w) {{ y[threadIdx.x] = {expression}; }}"
    assert run(source, 1, 32, np.zeros(32, np.float32), 1.25, 3.0).counts.flops == 32 * flops


def test_flops_are_additions_and_multiplications(run):
    source = """
    __global__ void f(float* x, double* d, unsigned long long big) {
      int t = threadIdx.x;
      x[t] = fmaf(x[t], 2.0f, 1.0f) - x[t];
      x[t] = expf(x[t]) / sqrtf(x[t] + 3.0f);
      d[t] = d[t] * 3.0 + (double)big;
      x[t] = fmaxf(x[t], -x[t]);
    }"""
    counts = run(source, 1, 32, np.ones(32, np.float32), np.ones(32), 5).counts
    assert counts.flops == 32 * (2 + 1 + 1 + 2)


@pytest.mark.parametrize(
    ("to", "flops"),
    [
        ("u[t] = (unsigned long long)x[t];", 0),
        ("for (int j = 0; j < t % 4; j++) u[t] += (size_t)(x[t] * j);", 1.5),
        ("u[t] = (unsigned long)d[t] ^ (unsigned long)x[t];", 0),
        ("long long v = u[t]; float w = x[t]; u[t] = (long long)(w - 0.5f) ^ v;", 1),
    ],
)
def test_a_conversion_is_no_flop(run, to, flops):
    source = f"__global__ void f(float* x, double* d, unsigned long long* u) {{ int t = threadIdx.x; {to} }}"
    counts = run(source, 1, 32, np.full(32, 2.5, np.float32), np.ones(32), np.ones(32, np.uint64)).counts
    assert counts.flops == 32 * flops


def test_what_a_loop_repeats_counts_each_time_and_what_nobody_uses_does_not(run):
    source = "__global__ void f(float* y, float x, float w) { float a = 0; float b = x + w; WHAT y[0] = a; }"
    y = np.zeros(1, np.float32)
    loop = "for (int i = 0; i < 4; ++i) a += x * w;"
    assert run(source.replace("WHAT", loop), 1, 1, y, 2.0, 3.0).counts.flops == 8
    assert run(source.replace("WHAT", ""), 1, 1, y, 2.0, 3.0).counts.flops == 0
