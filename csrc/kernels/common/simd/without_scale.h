// For instruction sets that have no multiplication by a power of two.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

// x, where exp(x) is neither 0 nor inf.
ROOFLAB_INLINE NativeFloat exp_argument(NativeFloat x) {
  const NativeFloat low = NativeFloat{} - 104.0f, high = NativeFloat{} + 89.0f;
  x = x < low ? low : x;
  return x > high ? high : x;
}
ROOFLAB_INLINE NativeFloat exp_rest(NativeFloat f) { return f; }
// p 2^n in two factors, because 2^128 and 2^n for n < -126 are not normal floats; `exponent` is n as an integer.
ROOFLAB_INLINE NativeFloat times_power(NativeFloat p, NativeFloat, NativeInt exponent) {
  const NativeInt half = exponent >> 1;
  return p * (NativeFloat)((half + 127) << 23) * (NativeFloat)((exponent - half + 127) << 23);
}

// 2^x for Exp2, whose polynomial is 2^f on [-1/2, 1/2].
template <class Polynomial>
ROOFLAB_INLINE NativeFloat exp2(NativeFloat x, NativeFloat lowest, NativeFloat shifter, Polynomial polynomial) {
  x = lowest > x ? lowest : x;
  const NativeFloat shifted = x + shifter;  // rounds to an integer: the low bits hold it, and the exponent's bias
  const NativeFloat power = (NativeFloat)((NativeUint)shifted << 23);  // 0 for -127
  return polynomial(x - (shifted - shifter)) * power;
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
