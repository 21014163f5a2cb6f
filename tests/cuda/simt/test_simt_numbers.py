"""Integers, floats and 16 bits: what a kernel computes with them."""

import math
from fractions import Fraction

import numpy as np
import pytest

import rooflab as rl


def values(run, body, count=8, parameters="int n", args=(0,), dtype=np.int32, threads=1, before=""):
    out = np.zeros(count, dtype)
    kind = {np.int32: "int", np.float32: "float", np.float64: "double", np.uint32: "unsigned"}[dtype]
    launch = run(f"{before}\n__global__ void f({kind}* out, {parameters}) {{ {body} }}", 1, threads, out, *args)
    assert launch.findings == [], launch
    return out.tolist()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("unsigned i = 3; out[0] = i - n < 0 ? 1 : 2;", [2]),  # never below zero
        ("int i = 0; out[i++] += 2; out[7] = i;", [2, 0, 0, 0, 0, 0, 0, 1]),
        ("int *p = out + 2, *q = out + 7; out[0] = q - p; out[1] = p < q;", [5, 1]),
        ("out[0] = 010 + 0x10 + 0b11 + 1'000;", [8 + 16 + 3 + 1000]),
        ("int x = 2147483647; x += 1; out[0] = x; out[1] = -7 / 2; out[2] = -7 % 3; out[3] = -8 >> 1;",
         [-(1 << 31), -3, -1, -4]),
        ("unsigned char c = 250; c += 10; out[0] = c; short s = 40000; out[1] = s;", [4, 40000 - (1 << 16)]),
        ("for (int i = 0; i < 8; ++i) { if (i == 2) continue; if (i == 5) break; out[i] = i; }", [0, 1, 0, 3, 4]),
        ("int i = 3; do out[i] = i; while (--i > 1); switch (n) { case 9: out[0] = 1; break; default: out[1] = 7; }",
         [1, 0, 2, 3]),
        ("auto twice = [&](int x) { return 2 * x + n; }; out[0] = twice(5);", [19]),
        ("struct P { int a[2]; __device__ int sum() { return a[0] + a[1]; } }; P p{{3, 4}}; out[0] = p.sum();", [7]),
        ("out[0] = max(3, n) + min(-1, n) + abs(-4); out[1] = __popc(255) + __clz(1) + __ffs(8);", [12, 8 + 31 + 4]),
        ("out[0] = __brev(1u) >> 31;", [1]),
        ("unsigned u = 5; out[0] = max(u, 7u); out[1] = max(2, 3u); out[2] = (int)min(2.5f, 1.5);", [7, 3, 1]),
        ("out[0] = __float_as_int(1.0f); out[1] = sizeof(float4); out[2] = alignof(float4); out[3] = warpSize;",
         [0x3F800000, 16, 16, 32]),
    ],
)  # fmt: skip
def test_integers_and_statements(run, body, expected):
    assert values(run, body, args=(9,)) == expected + [0] * (8 - len(expected))


def test_conversions_of_16_bits_round_as_numpy_does(run):
    source = """
    __global__ void f(const float* x, half* h, __nv_bfloat16* b, float* back, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) { h[i] = __float2half(x[i]); b[i] = __float2bfloat16(x[i]); back[i] = __half2float(h[i]); }
    }"""
    bits = np.random.default_rng(1).integers(0, 1 << 32, 4000, dtype=np.uint32)
    edges = [
        0,
        1,
        0x33000000,
        0x33000001,
        0x387FC000,
        0x477FEFFF,
        0x477FF000,
        0x7F800000,
        0x7F7FFFFF,
        0x3F800FFF,
        0x3F801000,
        0x3F803000,
        0x3F808000,
        0x3F818000,
    ]
    x = np.concatenate([bits, np.array(edges, np.uint32), 0x3F800000 + (bits >> 9)]).view(np.float32)
    x = x[~np.isnan(x)]
    h, b, back = np.zeros(x.size, np.float16), rl.zeros(x.size, dtype="bfloat16"), np.zeros(x.size, np.float32)
    assert run(source, (x.size + 255) // 256, 256, x, h, b, back, x.size, mode="check").findings == []
    with np.errstate(over="ignore"):
        assert np.array_equal(h, x.astype(np.float16)) and np.array_equal(back, x.astype(np.float16).astype(np.float32))
    assert np.array_equal(b.numpy(), x.astype(b.numpy().dtype))


def test_mathematics(run):
    body = """
    out[0] = expf(1) + __expf(1) + exp(1.0f); out[1] = rsqrtf(4); out[2] = fmaxf(1, 2) + fminf(1, 2);
    out[3] = powf(2, 3);
    out[4] = tanhf(0.5f) + erff(0.5f); out[5] = __fdividef(1, 4) + fmaf(2, 3, 4); out[6] = floorf(-1.5f) + roundf(2.5f);
    out[7] = isinf(INFINITY) + isnan(NAN) + (FLT_MAX > 1e38f) + (-INFINITY < 0);"""
    expected = [3 * np.e, 0.5, 3, 8, np.tanh(0.5) + 0.5204999, 10.25, 1, 4]
    assert np.allclose(values(run, body, dtype=np.float32), expected, rtol=1e-6)


def test_functions_of_integers_and_bits(run):
    body = """
    out[0] = __byte_perm(0x33221100u, 0x77665544u, 0x7410) == 0x77441100u;
    out[1] = __funnelshift_l(0x80000000u, 1u, 33) == 3 && __funnelshift_r(0u, 1u, 1) == 0x80000000u;
    out[2] = __funnelshift_lc(5u, 1u, 40) == 5 && __funnelshift_rc(5u, 9u, 40) == 9 && __brevll(1ull) == 1ull << 63;
    out[3] = __umul64hi(~0ull, 2ull) == 1 && __mul64hi(-1, 1) == -1 && __hadd(-3, 0) == -2 && __sad(3, 5, 1u) == 3;
    out[4] = __dp4a(0x01ff0102, 0x01010101, 5) == 1 - 1 + 1 + 2 + 5 && __dp4a(0x01ff0102u, 0x01010101u, 5u) == 264;
    out[5] = sqrt(16) == 4 && pow(2, 3) == 8 && floor(3) == 3 && umin(3, 4) == 3;
    float w;
    out[6] = modff(-2.5f, &w) == -0.5f && w == -2 && 1 / modff(-INFINITY, &w) == -INFINITY && normcdff(0) == 0.5f;
    out[7] = __hiloint2double(0x3ff00000, 0) == 1.0 && INT64_MAX == LLONG_MAX && UINT32_MAX == ~0u;"""
    assert values(run, body) == [1] * 8


def test_conversions_to_integers_by_name_take_the_nearest_one(run):
    source = """
    __global__ void f(const float* x, long long* y) {
      int i = threadIdx.x;
      y[i] = __float2int_rn(x[i]), y[6 + i] = __float2uint_rz(x[i]), y[12 + i] = __float2ll_rd(x[i]);
      y[18 + i] = __double2int_ru(x[i]), y[24 + i] = __half2int_rz(half(x[i])), y[30 + i] = lroundf(x[i]);
    }"""
    y = np.zeros((6, 6), np.int64)
    launch = run(source, 1, 6, np.array([1e20, -1e20, np.nan, 2.5, -2.5, -0.5], np.float32), y)
    int_, long_ = (1 << 31) - 1, (1 << 63) - 1
    assert launch.findings == [] and y.tolist() == [
        [int_, -int_ - 1, 0, 2, -2, 0],
        [(1 << 32) - 1, 0, 0, 2, 0, 0],
        [long_, -long_ - 1, -long_ - 1, 2, -3, -1],
        [int_, -int_ - 1, -int_ - 1, 3, -2, 0],
        [int_, -int_ - 1, 0, 2, -2, 0],
        [long_, -long_ - 1, -long_ - 1, 3, -3, -1],
    ]


@pytest.mark.parametrize("type_", ["half", "__nv_bfloat16"])
def test_pairs_of_16_bits(run, type_):
    body = f"""
    typedef decltype(make_pair({type_}(1.5f), {type_}(-2))) Pair;
    Pair a = make_pair({type_}(1.5f), {type_}(-2)), b = make_pair({type_}(2), {type_}(2));
    a += b;
    a = -(a / b) * b - b;
    out[0] = (float)a.x == -5.5f && (float)a.y == -2;
    out[1] = __hmax2(a, b) == b && __hbgt2(b, a) && !__hbeq2(a, b) && (float)__hlt2(a, b).y == 1;
    out[2] = (float)h2sqrt(b * b).y == 2 && (float)__habs2(a).x == 5.5f && (float)hfloor(a.x) == -6;"""
    before = """__device__ half2 make_pair(half x, half y) { return make_half2(x, y); }
    __device__ __nv_bfloat162 make_pair(__nv_bfloat16 x, __nv_bfloat16 y) { return make_bfloat162(x, y); }"""
    assert values(run, body, 3, before=before) == [1] * 3


def test_a_fused_multiply_and_add_of_16_bits_rounds_once(run):
    """As exact fractions say, also where a double does not hold the sum."""
    random = np.random.default_rng(3)
    x, y = (rl.tensor(random.standard_normal(1000), dtype="bfloat16").float().numpy() for _ in range(2))
    tie = np.ldexp(1.0, np.floor(np.log2(np.abs(x * y))).astype(int) - 8)  # half of the last bit of their product
    z = -np.sign(random.standard_normal(1000)) * np.ldexp(tie, random.integers(-60, 0, 1000))
    x, y, z = np.append(x, 1.5), np.append(y, 1.0078125), np.append(z, -(2.0**-60))
    given = [rl.tensor(each.astype("float32"), dtype="bfloat16") for each in (x, y, z)]
    made = rl.zeros(1001, dtype="bfloat16")
    source = """
    __global__ void f(const nv_bfloat16* x, const nv_bfloat16* y, const nv_bfloat16* z, nv_bfloat16* out, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) out[i] = __hfma(x[i], y[i], z[i]);
    }"""
    launch = run(source, 8, 128, *given, made, 1001)
    assert launch.findings == [] and launch.counts.flops == 2 * 1001
    exact = [Fraction(a) * Fraction(b) + Fraction(c) for a, b, c in zip(*(t.tolist() for t in given), strict=True)]
    assert made.tolist() == [rounded(value, 8) for value in exact] and made.tolist()[-1] == 1.5078125


def rounded(value, bits):
    """To the nearest of so many bits, ties to even."""
    if value == 0:
        return 0.0
    unit = Fraction(2) ** (math.frexp(float(value))[1] - bits)
    return float(round(value / unit) * unit)


def test_doubles_become_16_bits_in_one_rounding(run):
    body = """
    out[0] = __half_as_ushort(half(1 + 1.0 / 2048 + 1e-12));
    out[1] = __bfloat16_as_ushort((1 << 24) + (1 << 16) + 1);"""
    assert values(run, body, 2) == [0x3C01, 0x4B81]


@pytest.mark.parametrize("distance", [-1, 31, 32, 33, -31, 1 << 20])
def test_a_shuffle_takes_five_bits_of_its_distance(run, distance):
    source = """
    __global__ void f(int* y, int by) {
      int t = threadIdx.x;
      y[t] = __shfl_down_sync(~0u, t, by);
      y[t + 32] = __shfl_up_sync(~0u, t, by);
      y[t + 64] = __shfl_xor_sync(~0u, t, by);
    }"""
    y, by = np.zeros((3, 32), np.int32), distance % 32
    assert run(source, 1, 32, y, distance).findings == []
    down = [t + by if t + by < 32 else t for t in range(32)]
    assert y.tolist() == [down, [t - by if t >= by else t for t in range(32)], [t ^ by for t in range(32)]]


def test_functions_that_the_c_library_lacks(run):
    body = """
    int e, g;
    double s, c;
    sincospi(1.25, &s, &c);
    out[0] = fabs(s + M_SQRT1_2) + fabs(c + M_SQRT1_2);
    out[1] = sinpif(1e6f) == 0 && sinpif(-0.5f) == -1 && cospi(0.5) == 0 && cospif(3) == -1 && sinpif(2.5f) == 1;
    out[2] = norm3df(2, 3, 6) == 7 && rnorm3d(2, 3, 6) == 1.0 / 7 && norm4d(1, 1, 1, 1) == 2;
    out[2] = out[2] && rnorm4df(2, 2, 2, 2) == .25f;
    out[3] = frexpf(-12.0f, &e) == -0.75f && e == 4 && frexp(1e-300, &g) * exp2(g) == 1e-300;
    out[4] = ilogbf(9.5f) == 3 && ilogb(0.25) == -2 && ilogb(0.0) == -2147483648;
    out[5] = isnan(erfinvf(1.5f)) && isinf(erfinv(1.0)) && erfinvf(0) == 0;
    out[5] = out[5] && isinf(normcdfinv(0.0)) && isnan(sinpi(INFINITY));
    out[6] = normcdfinv(0.975); out[7] = erfcinv(1e-30);"""
    found = values(run, body, dtype=np.float64)
    assert found[0] < 1e-15 and found[1:6] == [1] * 5
    assert found[6:8] == pytest.approx([1.959963984540054, 8.148616223169864], rel=1e-13)
    source = """__global__ void f(const double* x, double* y, double* z) {
      int i = threadIdx.x;
      y[i] = erf(erfinv(x[i])) - x[i];
      z[i] = erfc(erfcinv(x[i] * x[i])) - x[i] * x[i];
    }"""
    x = np.concatenate([np.linspace(-0.999, 0.999, 101), 10.0 ** np.arange(-20, 0), 1 - 10.0 ** np.arange(-15, -1)])
    y, z = np.zeros(x.size), np.zeros(x.size)
    run(source, 1, x.size, x, y, z)
    assert np.all(np.abs(y) <= 4e-16 * np.abs(x)) and np.all(np.abs(z) <= 1e-13 * x * x)
