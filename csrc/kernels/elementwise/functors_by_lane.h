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

template <class S>
ROOFLAB_INLINE S remainder_of(S a, S b) {
  S rest;
  if constexpr (sizeof(S) == 4)
    rest = __builtin_fmodf(a, b);
  else
    rest = __builtin_fmod(a, b);
  return rest;
}

template <class S>
ROOFLAB_INLINE Simd<S> floating_remainder(Simd<S> a, Simd<S> b) {
  return by_lane(a, b, [](S x, S y) {
    const S rest = remainder_of(x, y);
    return rest != S(0) && (rest < S(0)) != (y < S(0)) ? rest + y : rest;
  });
}

template <class S>
ROOFLAB_INLINE Simd<S> floating_floor_divide(Simd<S> a, Simd<S> b) {
  return by_lane(a, b, [](S x, S y) {
    if (y == S(0)) return x / y;
    const S rest = remainder_of(x, y);
    const S quotient = (x - rest) / y - (rest != S(0) && (rest < S(0)) != (y < S(0)) ? S(1) : S(0));
    return static_cast<S>(quotient == S(0) ? __builtin_copysign(0.0, x / y) : __builtin_rint(quotient));
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
