// exp, log, tanh, sin, cos and floor of simd.h's vectors (include simd.h). For floats: reduce the argument to a short
// interval, then a polynomial whose coefficients were fitted there by weighted minimax. For doubles: the C library.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

// exp(x) = 2^n exp(r), |r| <= ln(2) / 2. The clamp leaves NaN alone and lets +-inf end in inf and 0 like finite
// overflow.
ROOFLAB_INLINE NativeFloat native_exp(NativeFloat x) {
  const NativeFloat zero = {};
  const NativeFloat low = zero - 104.0f, high = zero + 89.0f;
  x = x < low ? low : x;
  x = x > high ? high : x;
  const NativeFloat shifter = zero + 0x1.8p23f;  // adding it rounds to an integer, held in the low bits
  const NativeFloat shifted = native_fma(x, zero + 1.44269504f, shifter);
  const NativeFloat n = shifted - shifter;
  NativeFloat r = native_fma(n, zero - 0.693145752f, x);  // ln(2) in two parts; n times the first is exact
  r = native_fma(n, zero - 1.42860677e-6f, r);
  NativeFloat p = zero + 0.00138144669f;
  p = native_fma(p, r, zero + 0.00836878051f);
  p = native_fma(p, r, zero + 0.0416683942f);
  p = native_fma(p, r, zero + 0.166665201f);
  p = native_fma(p, r, zero + 0.499999934f);
  p = native_fma(p * r, r, r) + 1.0f;
  // 2^n in two factors, since n = 128 and n < -126 have no float of their own.
  const NativeInt exponent = (NativeInt)shifted - (NativeInt)shifter, half = exponent >> 1;
  return p * (NativeFloat)((half + 127) << 23) * (NativeFloat)((exponent - half + 127) << 23);
}

// log(x) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2)).
ROOFLAB_INLINE NativeFloat native_log(NativeFloat x) {
  const NativeFloat zero = {}, infinity = zero + __builtin_inff();
  const NativeInt tiny = x < zero + 0x1p-126f;
  // sqrt(1/2) becomes the start of a binade; negative numbers wrap, and are NaN in the end.
  const NativeInt bits = (NativeInt)((NativeUint)(tiny ? x * 0x1p23f : x) - 0x3f3504f3u);
  const NativeInt exponent = (bits >> 23) - (tiny & 23);
  const NativeFloat e = __builtin_convertvector(exponent, NativeFloat);
  const NativeFloat f = (NativeFloat)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  NativeFloat p = zero - 0.0785961871f;
  p = native_fma(p, f, zero + 0.128816544f);
  p = native_fma(p, f, zero - 0.131287552f);
  p = native_fma(p, f, zero + 0.14181191f);
  p = native_fma(p, f, zero - 0.166245539f);
  p = native_fma(p, f, zero + 0.200022863f);
  p = native_fma(p, f, zero - 0.250008104f);
  p = native_fma(p, f, zero + 0.333333167f);
  const NativeFloat square = f * f;
  NativeFloat small = native_fma(p, square * f, e * 1.42860677e-6f);
  small = native_fma(square, zero - 0.5f, small);
  NativeFloat result = native_fma(e, zero + 0.693145752f, f + small);
  result = x > zero ? result : x == zero ? -infinity : zero / zero;  // NaN for x < 0 and x NaN
  return x == infinity ? infinity : result;
}

// x + x^3 P(x^2) near 0, where 1 - 2 / (exp(2x) + 1) would cancel.
ROOFLAB_INLINE NativeFloat native_tanh(NativeFloat x) {
  const NativeFloat zero = {};
  const NativeInt sign = (NativeInt)x & (NativeInt)(-zero);
  const NativeFloat magnitude = (NativeFloat)((NativeInt)x ^ sign), square = x * x;
  NativeFloat p = zero - 0.00571704319f;
  p = native_fma(p, square, zero + 0.0206505857f);
  p = native_fma(p, square, zero - 0.0537434976f);
  p = native_fma(p, square, zero + 0.133314913f);
  p = native_fma(p, square, zero - 0.333332839f);
  const NativeFloat near = native_fma(p * square, magnitude, magnitude);
  const NativeFloat far = 1.0f - 2.0f / (native_exp(magnitude + magnitude) + 1.0f);
  const NativeFloat result = magnitude < zero + 0.625f ? near : far;
  return (NativeFloat)((NativeInt)result | sign);
}

// sin(x) for quarter = 0, cos(x) for quarter = 1: x = n pi/2 + r with |r| <= pi/4, then sin or cos of r by n + quarter.
// n pi/2 is taken off in double, which leaves r good to a float's last bit as long as n is far below 2^24.
inline constexpr float kTrigonometricLimit = 1e5f;
ROOFLAB_INLINE F32x16 sin_cos(F32x16 x, int quarter) {
  constexpr int kHalf = F32x16::kLanes / 2;
  float lanes[F32x16::kLanes], counts[F32x16::kLanes];
  store<float>(lanes, x);
  for (int i = 0; i < 2 * kHalf; ++i) {
    const double value = lanes[i], shifted = value * 0.63661977236758134308 + 0x1.8p52;
    const double n = shifted - 0x1.8p52;
    lanes[i] = static_cast<float>((value - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34);
    counts[i] = static_cast<float>(n);
  }
  const F32x16 r = load<float>(lanes), n = load<float>(counts);
  return map(
      r, n, [quarter](NativeFloat angle, NativeFloat count) __attribute__((always_inline)) {
        const NativeFloat zero = {}, square = angle * angle;
        NativeFloat s = zero - 0.000195166554f;
        s = native_fma(s, square, zero + 0.00833217354f);
        s = native_fma(s, square, zero - 0.166666549f);
        s = native_fma(s * square, angle, angle);
        NativeFloat c = zero + 2.44377297e-05f;
        c = native_fma(c, square, zero - 0.00138873614f);
        c = native_fma(c, square, zero + 0.0416666467f);
        c = native_fma(c * square, square, square * -0.5f) + 1.0f;
        const NativeInt quadrant = __builtin_convertvector(count, NativeInt) + quarter;
        const NativeFloat value = (quadrant & 1) != 0 ? c : s;
        return (NativeFloat)((NativeInt)value ^ ((quadrant & 2) << 30));
      });
}

ROOFLAB_INLINE F32x16 exp(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_exp(v); });
}
ROOFLAB_INLINE F32x16 log(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_log(v); });
}
ROOFLAB_INLINE F32x16 tanh(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_tanh(v); });
}
ROOFLAB_INLINE F32x16 sin(F32x16 x) {
  if (any(~(abs(x) <= kTrigonometricLimit))) return map_lanes(x, ::sinf);  // large, inf or NaN
  return sin_cos(x, 0);
}
ROOFLAB_INLINE F32x16 cos(F32x16 x) {
  if (any(~(abs(x) <= kTrigonometricLimit))) return map_lanes(x, ::cosf);
  return sin_cos(x, 1);
}

ROOFLAB_INLINE F64x8 exp(F64x8 x) {
  return map_lanes(x, [](double v) { return __builtin_exp(v); });
}
ROOFLAB_INLINE F64x8 log(F64x8 x) {
  return map_lanes(x, [](double v) { return __builtin_log(v); });
}
ROOFLAB_INLINE F64x8 tanh(F64x8 x) {
  return map_lanes(x, [](double v) { return __builtin_tanh(v); });
}
ROOFLAB_INLINE F64x8 sin(F64x8 x) {
  return map_lanes(x, [](double v) { return __builtin_sin(v); });
}
ROOFLAB_INLINE F64x8 cos(F64x8 x) {
  return map_lanes(x, [](double v) { return __builtin_cos(v); });
}

// Adding and taking off 2^(mantissa bits) drops the fraction of |x| below that; larger numbers are whole already.
template <class S>
ROOFLAB_INLINE Simd<S> floor(Simd<S> x) {
  const Simd<S> whole = Simd<S>(sizeof(S) == 4 ? S(0x1p23) : S(0x1p52));
  const Simd<S> magnitude = abs(x), rounded = (magnitude + whole) - whole;
  const Simd<S> signed_rounded = select(x < S(0), -rounded, rounded);
  const Simd<S> below = select(signed_rounded > x, signed_rounded - S(1), signed_rounded);
  return select((magnitude < whole) & (x != S(0)), below, x);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
