// exp, log, tanh, sin, cos and rounding of simd.h's vectors (include simd.h). For floats the argument is reduced to a
// short interval, and then a polynomial is evaluated that was fitted there by weighted minimax. exp and log of doubles
// are in simd_double.h; their other functions are the C library's.
#pragma once

#include "kernels/common/simd_double.h"

namespace rooflab::kernels::ROOFLAB_ISA {

// 2^f on [-1/2, 1/2] to 3e-9, the highest power first: the polynomial of every exponential here.
inline constexpr int kExp2Terms = 7;
inline constexpr float kExp2[kExp2Terms] = {0.000153285946f, 0.0013390987f, 0.0096185012f, 0.0555035956f,
                                            0.240226477f,    0.693147182f,  1.0f};

// 2^n 2^f, |f| <= 1/2; `exponent` is n as an integer.
ROOFLAB_INLINE NativeFloat power_of_two(NativeFloat f, NativeFloat n, NativeInt exponent) {
  const NativeFloat zero = {};
  NativeFloat p = zero + kExp2[0];
  for (int i = 1; i < kExp2Terms; ++i) p = native_fma(p, f, zero + kExp2[i]);
  return times_power(p, n, exponent);
}

// exp(x) = 2^n 2^f with n + f = x log2(e). NaN stays NaN; overflow gives inf and underflow 0, also for +-inf.
ROOFLAB_INLINE NativeFloat native_exp(NativeFloat x) {
  const NativeFloat zero = {}, log2e = zero + 1.44269502f;
  const NativeFloat shifter = zero + 0x1.8p23f;  // adding it rounds to an integer, which the low bits then hold
  x = exp_argument(x);
  const NativeFloat shifted = native_fma(x, log2e, shifter), n = shifted - shifter;
  NativeFloat f;
  if constexpr (kHasFma)  // log2(e) in two parts
    f = native_fma(x, zero + 1.92596299e-8f, native_fma(x, log2e, -n));
  else  // a product is rounded, so n ln(2) has two parts, the first of which is exact
    f = ((x - n * 0.693145752f) - n * 1.42860677e-6f) * log2e;
  return power_of_two(exp_rest(f), n, (NativeInt)shifted - (NativeInt)shifter);
}

// 2^x for x < 127, to 1 ulp. It is inf for 128, and 0 for x <= -127 and -inf, because a subnormal result takes a
// hundred times as long. NaN stays NaN. The constants are members of an object that the compiler cannot see through: it
// would otherwise reload them in every step of a loop, and so they stay in registers.
class Exp2 {
 public:
  ROOFLAB_INLINE Exp2() {
    for (int i = 0; i < kExp2Terms; ++i) polynomial_[i] = in_register(kExp2[i]);
    lowest_ = in_register(-127.0f);
    shifter_ = in_register(0x1.8p23f + 127);
  }
  ROOFLAB_INLINE NativeFloat operator()(NativeFloat x) const {
    return exp2(
        x, lowest_, shifter_, [&](NativeFloat f) __attribute__((always_inline)) { return polynomial(f); });
  }

 private:
  ROOFLAB_INLINE NativeFloat polynomial(NativeFloat f) const {
    NativeFloat p = polynomial_[0];
    for (int i = 1; i < kExp2Terms; ++i) p = native_fma(p, f, polynomial_[i]);
    return p;
  }
  ROOFLAB_INLINE static NativeFloat in_register(float x) {
    NativeFloat constant = NativeFloat{} + x;
    hold(constant);
    return constant;
  }
  NativeFloat polynomial_[kExp2Terms], lowest_, shifter_;
};

// log(x) = e ln(2) + f + small, with 1 + f in [sqrt(1/2), sqrt(2)).
struct LogParts {
  NativeFloat e, f, small;
};
ROOFLAB_INLINE LogParts log_parts(NativeFloat x) {
  const NativeFloat zero = {};
  const NativeInt tiny = x < zero + 0x1p-126f;
  // Now sqrt(1/2) is the start of a binade. Negative numbers wrap around; logarithm_or_limit makes them NaN.
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
  return {e, f, native_fma(p, square * f, square * -0.5f)};
}

ROOFLAB_INLINE NativeFloat native_log(NativeFloat x) {
  const auto [e, f, small] = log_parts(x);
  const NativeFloat zero = {}, rest = native_fma(e, zero + 1.42860677e-6f, small);
  return logarithm_or_limit(x, native_fma(e, zero + 0.693145752f, f + rest));
}

// Of another base: its logarithms of 2 and of Euler's number, each in two parts.
ROOFLAB_INLINE NativeFloat native_log(NativeFloat x, float of_2, float of_2_rest, float of_e, float of_e_rest) {
  const auto [e, f, small] = log_parts(x);
  const NativeFloat zero = {}, unit = zero + of_e;
  const NativeFloat rest = native_fma(f, zero + of_e_rest, native_fma(small, unit, e * of_2_rest));
  return logarithm_or_limit(x, native_fma(e, zero + of_2, native_fma(f, unit, rest)));
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
// n pi/2 is subtracted in double, so r is accurate to a float's last bit as long as n is far below 2^24. sin(r) takes
// the sign of r, because a sum with -0 would lose it.
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
        s = (NativeFloat)((NativeInt)s | ((NativeInt)angle & (NativeInt)(-zero)));
        NativeFloat c = zero + 2.44377297e-05f;
        c = native_fma(c, square, zero - 0.00138873614f);
        c = native_fma(c, square, zero + 0.0416666467f);
        c = native_fma(c * square, square, square * -0.5f) + 1.0f;
        const NativeInt quadrant = __builtin_convertvector(count, NativeInt) + quarter;
        const NativeFloat value = (quadrant & 1) != 0 ? c : s;
        return (NativeFloat)((NativeInt)value ^ ((quadrant & 2) << 30));
      });
}

// The same for all x. Those that are large, inf or NaN are left to the C library, and do not change their neighbours.
ROOFLAB_INLINE F32x16 sin_cos(F32x16 x, int quarter, float (*library)(float)) {
  const Mask<float> is_near = abs(x) <= kTrigonometricLimit;
  if (!any(~is_near)) return sin_cos(x, quarter);
  return select(is_near, sin_cos(select(is_near, x, F32x16(0.0f)), quarter), map_lanes(x, library));
}

ROOFLAB_INLINE F32x16 exp(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_exp(v); });
}
ROOFLAB_INLINE F32x16 log(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_log(v); });
}
ROOFLAB_INLINE F32x16 log2(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_log(v, 1, 0, 1.44269502f, 1.92596303e-8f); });
}
ROOFLAB_INLINE F32x16 log10(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) {
        return native_log(v, 0.301025391f, 4.60503907e-6f, 0.434294492f, -1.010305e-8f);
      });
}
ROOFLAB_INLINE F32x16 tanh(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) { return native_tanh(v); });
}
ROOFLAB_INLINE F32x16 sin(F32x16 x) { return sin_cos(x, 0, ::sinf); }
ROOFLAB_INLINE F32x16 cos(F32x16 x) { return sin_cos(x, 1, ::cosf); }

ROOFLAB_INLINE F64x8 exp(F64x8 x) {
  return map(
      x, [](NativeDouble v) __attribute__((always_inline)) { return native_exp(v); });
}
ROOFLAB_INLINE F64x8 log(F64x8 x) {
  return map(
      x, [](NativeDouble v) __attribute__((always_inline)) { return native_log(v); });
}
ROOFLAB_INLINE F64x8 log2(F64x8 x) {
  return map(
      x, [](NativeDouble v) __attribute__((always_inline)) {
        return native_log(v, 1, 0, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
      });
}
ROOFLAB_INLINE F64x8 log10(F64x8 x) {
  return map(
      x, [](NativeDouble v) __attribute__((always_inline)) {
        return native_log(v, 0x1.34413509f6p-2, 0x1.9fef311f12b36p-42, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
      });
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

// The nearest integer; halfway between two, the even one. Adding and subtracting 2^(mantissa bits) drops the fraction
// of smaller |x|; larger numbers are integers already.
template <class S>
ROOFLAB_INLINE Simd<S> rint(Simd<S> x) {
  const Simd<S> whole = Simd<S>(sizeof(S) == 4 ? S(0x1p23) : S(0x1p52));
  const Simd<S> magnitude = abs(x), rounded = (magnitude + whole) - whole;
  return select((magnitude < whole) & (x != S(0)), select(x < S(0), -rounded, rounded), x);
}
template <class S>
ROOFLAB_INLINE Simd<S> floor(Simd<S> x) {
  const Simd<S> nearest = rint(x);
  return select(nearest > x, nearest - S(1), nearest);
}
template <class S>
ROOFLAB_INLINE Simd<S> ceil(Simd<S> x) {
  return -floor(-x);
}
template <class S>
ROOFLAB_INLINE Simd<S> trunc(Simd<S> x) {
  return select(x < S(0), ceil(x), floor(x));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
