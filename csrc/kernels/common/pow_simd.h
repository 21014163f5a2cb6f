// a to the power b for float vectors (see simd.h), as C defines it for all numbers, zeros, infinities and NaNs
// included. It is 2^(b log2|a|), computed in double and rounded once: <= 0.51 ulp.
#pragma once

#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {

// log2(x) to 4e-12 of it, for numbers 0 < x < inf that floats have. With x = 2^e m and s = (m - 1) / (m + 1) it is
// e + s P(s^2), m in [sqrt(1/2), sqrt(2)).
ROOFLAB_INLINE NativeDouble native_log2(NativeDouble x) {
  typedef uint64_t NativeUlong __attribute__((vector_size(kNativeBytes)));
  constexpr uint64_t kStart = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2), as the start of a binade
  const NativeDouble zero = {};
  const NativeUlong bits = (NativeUlong)x - kStart + (uint64_t{1024} << 52);
  const NativeDouble e = (NativeDouble)((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1024);
  const NativeDouble m = (NativeDouble)((bits & 0xfffffffffffff) + kStart);
  const NativeDouble s = (m - 1.0) / (m + 1.0), square = s * s;
  NativeDouble p = zero + 0.3407311427349735;
  p = native_fma(p, square, zero + 0.41167265012583826);
  p = native_fma(p, square, zero + 0.5770835864911633);
  p = native_fma(p, square, zero + 0.9617966733292858);
  p = native_fma(p, square, zero + 2.885390081790114);
  return native_fma(s, p, e);
}

// 2^x to 5e-11 of it. Beyond 300, where a float is 0 or inf, it is that of 300. NaN stays NaN.
ROOFLAB_INLINE NativeDouble native_exp2(NativeDouble x) {
  const NativeDouble zero = {}, low = zero - 300.0, high = zero + 300.0;
  const NativeDouble shifter = zero + 0x1.8p52;  // adding it rounds to an integer, which the low bits then hold
  x = x < low ? low : x;
  x = x > high ? high : x;
  const NativeDouble shifted = x + shifter, f = x - (shifted - shifter);
  NativeDouble p = zero + 1.5196188890754463e-05;
  p = native_fma(p, f, zero + 0.0001546675465485287);
  p = native_fma(p, f, zero + 0.0013333934891215972);
  p = native_fma(p, f, zero + 0.009618038138211974);
  p = native_fma(p, f, zero + 0.05550410366244951);
  p = native_fma(p, f, zero + 0.24022651066508685);
  p = native_fma(p, f, zero + 0.6931471807044216);
  p = native_fma(p, f, zero + 1.0);
  return p * (NativeDouble)(((NativeLong)shifted + 1023) << 52);
}

// |a|^b, where 1^b = a^0 = 1 also for NaN.
ROOFLAB_INLINE NativeDouble native_pow(NativeDouble a, NativeDouble b) {
  const NativeDouble zero = {}, infinity = zero + __builtin_inf();
  a = (NativeDouble)((NativeLong)a & ~(NativeLong)(-zero));
  NativeDouble logarithm = a > zero ? native_log2(a) : -infinity;
  logarithm = a < infinity ? logarithm : a;
  return native_exp2(((b == zero) | (logarithm == zero)) != 0 ? zero : b * logarithm);
}

ROOFLAB_INLINE F32x16 pow(F32x16 a, F32x16 b) {
  constexpr int kLanes = F32x16::kLanes;
  float bases[kLanes], exponents[kLanes];
  store<float>(bases, a);
  store<float>(exponents, b);
  double wide[kLanes], powers[kLanes];
  for (int i = 0; i < kLanes; ++i) wide[i] = bases[i];
  for (int i = 0; i < kLanes; ++i) powers[i] = exponents[i];
  for (int half = 0; half < kLanes; half += F64x8::kLanes) {
    const auto power = [](auto x, auto y) __attribute__((always_inline)) { return native_pow(x, y); };
    store<double>(powers + half, map(load<double>(wide + half), load<double>(powers + half), power));
  }
  for (int i = 0; i < kLanes; ++i) bases[i] = static_cast<float>(powers[i]);
  const F32x16 power = load<float>(bases);
  const F32x16 sign = map(
      a, [](NativeFloat x) __attribute__((always_inline)) {
        return (NativeFloat)(((NativeInt)x & (NativeInt)(-NativeFloat{})) | (NativeInt)(NativeFloat{} + 1.0f));
      });
  if (!any(sign < 0.0f)) return power;
  const F32x16 half = b * 0.5f;
  const Mask<float> is_whole = floor(b) == b, is_odd = is_whole & (floor(half) != half);
  const Mask<float> is_real = is_whole | (a >= 0.0f) | (a == -__builtin_inff());
  return select(is_real, select(is_odd, power * sign, power), F32x16(__builtin_nanf("")));
}

// 2^x to 1 ulp, without FMA to 1.1.
ROOFLAB_INLINE F32x16 power_of_two(F32x16 x) {
  return map(
      x, [](NativeFloat v) __attribute__((always_inline)) {
        const NativeFloat zero = {}, low = zero - 160.0f, high = zero + 160.0f, shifter = zero + 0x1.8p23f;
        v = v < low ? low : v;
        v = v > high ? high : v;
        const NativeFloat shifted = v + shifter, n = shifted - shifter;
        return power_of_two(v - n, n, (NativeInt)shifted - (NativeInt)shifter);
      });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
