// What functors.h has from the C library, for vectors: one lane at a time. For *_simd.cpp files (see simd.h), which
// include it before they evaluate an op.
#pragma once

#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {

// For functions of the C library, one lane at a time.
template <class S, class Function>
ROOFLAB_INLINE Simd<S> by_lane(Simd<S> a, Simd<S> b, Function function) {
  S first[Simd<S>::kLanes], second[Simd<S>::kLanes];
  store(static_cast<S*>(first), a);
  store(static_cast<S*>(second), b);
  for (int i = 0; i < Simd<S>::kLanes; ++i) first[i] = function(first[i], second[i]);
  return load(static_cast<const S*>(first));
}

// functors.h calls this. Squares and cubes have short cuts because they are common.
template <class S>
ROOFLAB_INLINE Simd<S> floating_pow(Simd<S> a, Simd<S> b) {
  if (!any(b != S(2))) return a * a;
  if (!any(b != S(3))) return a * a * a;
  return by_lane(a, b, [](S x, S y) {  // as above, whatever the other lanes have
    if (y == S(2)) return x * x;
    if (y == S(3)) return x * x * x;
    if constexpr (sizeof(S) == 4)
      return __builtin_powf(x, y);
    else
      return __builtin_pow(x, y);
  });
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
