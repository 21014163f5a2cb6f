// exp and log of simd.h's vectors of doubles (include simd.h), by the series of a short interval: to 1
// ulp, exp without FMA to 1.2.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

inline constexpr double kLog2E = 1.4426950408889634;
// ln(2) in two parts. The first has so few digits that its product with an exponent is exact.
inline constexpr double kLn2 = 0x1.62e42feep-1, kLn2Rest = 0x1.a39ef35793c76p-33;
// Adding it rounds to an integer, which the low bits then hold.
inline constexpr double kWholeDouble = 0x1.8p52;

// exp(x) = 2^n exp(r) with |r| <= ln(2) / 2. NaN stays NaN; overflow gives inf and underflow 0, also for +-inf.
ROOFLAB_INLINE NativeDouble native_exp(NativeDouble x) {
  constexpr int kTerms = 13;
  struct Inverse {
    double of[kTerms + 1];
  };
  constexpr Inverse kInverse = [] {  // 1 / k!
    Inverse made{};
    double factorial = 1;
    for (int k = 0; k <= kTerms; factorial *= ++k) made.of[k] = 1 / factorial;
    return made;
  }();
  const NativeDouble zero = {}, lowest = zero - 746.0, highest = zero + 710.0;
  x = x < lowest ? lowest : x;
  x = x > highest ? highest : x;
  const NativeDouble shifted = native_fma(x, zero + kLog2E, zero + kWholeDouble), n = shifted - kWholeDouble;
  const NativeDouble r = native_fma(n, zero - kLn2Rest, native_fma(n, zero - kLn2, x));
  NativeDouble p = zero + kInverse.of[kTerms];
  for (int k = kTerms - 1; k >= 0; --k) p = native_fma(p, r, zero + kInverse.of[k]);
  const NativeLong exponent = (NativeLong)shifted - (NativeLong)(zero + kWholeDouble), half = exponent >> 1;
  return p * (NativeDouble)((half + 1023) << 52) * (NativeDouble)((exponent - half + 1023) << 52);
}

// NaN where x < 0 or x is NaN.
template <class Vector>
ROOFLAB_INLINE Vector logarithm_or_limit(Vector x, Vector logarithm) {
  const Vector zero = {}, infinity = zero + __builtin_inff();
  logarithm = x > zero ? logarithm : x == zero ? -infinity : zero / zero;
  return x == infinity ? infinity : logarithm;
}

// log(x) = e ln(2) + f + small, with 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f),
// log(1 + f) = 2 (s + s^3 / 3 + s^5 / 5 + ...), where 2 s = f - s f.
struct LogPartsDouble {
  NativeDouble e, f, small;
};
ROOFLAB_INLINE LogPartsDouble log_parts(NativeDouble x) {
  constexpr int kTerms = 11;
  constexpr int64_t kRootOfHalf = 0x3fe6a09e667f3bcd, kMantissa = (int64_t{1} << 52) - 1;
  const NativeDouble zero = {};
  const NativeLong tiny = x < zero + 0x1p-1022;
  // Now sqrt(1/2) is the start of a binade. Negative numbers wrap around; logarithm_or_limit makes them NaN.
  const NativeLong bits = (NativeLong)(tiny ? x * 0x1p54 : x) - kRootOfHalf;
  const NativeLong exponent = (bits >> 52) - (tiny & 54);
  const NativeDouble e = (NativeDouble)((NativeLong)(zero + kWholeDouble) + exponent) - kWholeDouble;
  const NativeDouble f = (NativeDouble)((bits & kMantissa) + kRootOfHalf) - 1.0;
  const NativeDouble s = f / (f + 2.0), square = s * s, half_square = f * f * 0.5;
  NativeDouble p = zero + 2.0 / (2 * kTerms + 1);
  for (int k = kTerms - 1; k >= 1; --k) p = native_fma(p, square, zero + 2.0 / (2 * k + 1));
  // -s f + s^3 (...) with the larger part of s f, f^2 / 2, apart.
  return {e, f, native_fma(s, native_fma(p, square, half_square), -half_square)};
}
ROOFLAB_INLINE NativeDouble native_log(NativeDouble x) {
  const auto [e, f, small] = log_parts(x);
  const NativeDouble zero = {}, rest = native_fma(e, zero + kLn2Rest, small);
  return logarithm_or_limit(x, native_fma(e, zero + kLn2, f + rest));
}

// Of another base: its logarithms of 2 and of Euler's number, each in two parts.
ROOFLAB_INLINE NativeDouble native_log(NativeDouble x, double of_2, double of_2_rest, double of_e, double of_e_rest) {
  const auto [e, f, small] = log_parts(x);
  const NativeDouble zero = {}, unit = zero + of_e;
  const NativeDouble rest = native_fma(f, zero + of_e_rest, native_fma(small, unit, e * of_2_rest));
  return logarithm_or_limit(x, native_fma(e, zero + of_2, native_fma(f, unit, rest)));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
