// What functors.h has from the C library, for vectors: powers, % and //. For *_simd.cpp files (see simd.h), which
// include it before they evaluate an op.
#pragma once

#include "kernels/common/pow_simd.h"
#include "kernels/elementwise/functors.h"

namespace rooflab::kernels::ROOFLAB_ISA {

// Calls a function of the C library for one lane after another.
template <class S, class Function>
ROOFLAB_INLINE Simd<S> by_lane(Simd<S> a, Simd<S> b, Function function) {
  S first[Simd<S>::kLanes], second[Simd<S>::kLanes];
  store(static_cast<S*>(first), a);
  store(static_cast<S*>(second), b);
  for (int i = 0; i < Simd<S>::kLanes; ++i) first[i] = function(first[i], second[i]);
  return load(static_cast<const S*>(first));
}

ROOFLAB_INLINE F64x8 pow(F64x8 a, F64x8 b) {
  return by_lane(a, b, [](double x, double y) { return __builtin_pow(x, y); });
}

// Powers without a short exponent. Those of 2 take a logarithm less.
template <class S>
ROOFLAB_INLINE Simd<S> long_pow(Simd<S> a, Simd<S> b) {
  if constexpr (sizeof(S) == 4) {
    const Mask<S> is_two = a == S(2);
    if (!any(~is_two)) return power_of_two(b);
    if (any(is_two)) return select(is_two, power_of_two(b), pow(a, b));
  }
  return pow(a, b);
}

// functors.h calls this. What a lane gets does not depend on the others.
template <class S>
ROOFLAB_INLINE Simd<S> floating_pow(Simd<S> a, Simd<S> b) {
  constexpr S kShort[] = {S(2), S(3), S(-1), S(-2), S(0.5), S(-0.5)};
  const S first = b.part[0][0];
  Simd<S> power;
  if (!any(b != first) && short_pow(a, first, power)) return power;
  power = long_pow(a, b);
  Mask<S> is_short = b == kShort[0];
  for (const S exponent : kShort) is_short = is_short | (b == exponent);
  if (!any(is_short)) return power;
  for (const S exponent : kShort) {
    Simd<S> own = power;
    short_pow(a, exponent, own);
    power = select(b == exponent, own, power);
  }
  return power;
}

// What is left of a after it is divided by b, the quotient rounded towards zero; of a's sign, and exact, as fmod. Where
// the quotient fits the mantissa, it is off by one at most, and so the fused product and sum is exact. Other lanes are
// left to the C library, and do not change their neighbours.
template <class S>
ROOFLAB_INLINE Simd<S> remainder_towards_zero(Simd<S> a, Simd<S> b) {
  const auto library = [](S x, S y) {
    if constexpr (sizeof(S) == 4)
      return __builtin_fmodf(x, y);
    else
      return __builtin_fmod(x, y);
  };
  const Simd<S> top = abs(a), bottom = abs(b), quotient = top / bottom;
  Mask<S> is_near = (quotient < (sizeof(S) == 4 ? S(0x1p23) : S(0x1p52))) & (bottom < S(INFINITY));
  if constexpr (!kHasFma) is_near = is_near & (bottom == S(1));  // a product by 1 is exact
  if (!any(is_near)) return by_lane(a, b, library);
  const Simd<S> rest = fma(-floor(quotient), bottom, top);
  const Simd<S> magnitude = select(rest < S(0), rest + bottom, rest);
  const Simd<S> near = select(magnitude == S(0), a * S(0), select(a < S(0), -magnitude, magnitude));
  return any(~is_near) ? select(is_near, near, by_lane(a, b, library)) : near;
}

// functors.h calls these: its formulas, on vectors.
template <class S>
ROOFLAB_INLINE Mask<S> has_other_sign(Simd<S> rest, Simd<S> b) {
  return ((rest < S(0)) & (b > S(0))) | ((rest > S(0)) & (b < S(0)));
}
template <class S>
ROOFLAB_INLINE Simd<S> floating_remainder(Simd<S> a, Simd<S> b) {
  const Simd<S> rest = remainder_towards_zero(a, b);
  return select(has_other_sign(rest, b), rest + b, rest);
}
template <class S>
ROOFLAB_INLINE Simd<S> floating_floor_divide(Simd<S> a, Simd<S> b) {
  const Simd<S> rest = remainder_towards_zero(a, b), exact = a / b;
  const Simd<S> quotient = (a - rest) / b - select(has_other_sign(rest, b), Simd<S>(1), Simd<S>(0));
  return select(b == S(0), exact, select(quotient == S(0), exact * S(0), rint(quotient)));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
