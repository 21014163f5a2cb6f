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

// functors.h has the same for numbers. `fits` says where quotient and rest are exact.
template <class S>
struct Division {
  Simd<S> quotient, rest;
  Mask<S> fits;
};
template <class S>
ROOFLAB_INLINE Division<S> short_division(Simd<S> a, Simd<S> b) {
  const Simd<S> top = abs(a), bottom = abs(b), quotient = floor(top / bottom);
  Mask<S> fits = (quotient < (sizeof(S) == 4 ? S(0x1p23) : S(0x1p52))) & (bottom < S(INFINITY));
  if constexpr (!kHasFma) fits = fits & (bottom == S(1));  // a product by 1 is exact
  const Simd<S> rest = fma(-quotient, bottom, top);
  const Mask<S> is_beyond = rest < S(0);
  return {select(is_beyond, quotient - S(1), quotient), select(is_beyond, rest + bottom, rest), fits};
}

template <class S>
ROOFLAB_INLINE Mask<S> signs_differ(Simd<S> a, Simd<S> b) {
  return ((a < S(0)) & (b > S(0))) | ((a > S(0)) & (b < S(0)));
}

// functors.h calls these. Lanes whose division is not short are computed one by one, and do not change their
// neighbours.
template <class S>
ROOFLAB_INLINE Simd<S> floating_remainder(Simd<S> a, Simd<S> b) {
  const Division<S> division = short_division(a, b);
  Simd<S> rest = select(division.rest == S(0), a * S(0), select(a < S(0), -division.rest, division.rest));
  rest = select(signs_differ(rest, b), rest + b, rest);
  if (!any(~division.fits)) return rest;
  return select(division.fits, rest, by_lane(a, b, [](S x, S y) { return kernels::floating_remainder(x, y); }));
}
template <class S>
ROOFLAB_INLINE Simd<S> floating_floor_divide(Simd<S> a, Simd<S> b) {
  const Division<S> division = short_division(a, b);
  const Mask<S> is_negative = signs_differ(a, b);
  Simd<S> quotient = select(is_negative & (division.rest != S(0)), division.quotient + S(1), division.quotient);
  quotient = select(quotient == S(0), a / b * S(0), select(is_negative, -quotient, quotient));
  if (!any(~division.fits)) return quotient;
  return select(division.fits, quotient, by_lane(a, b, [](S x, S y) { return kernels::floating_floor_divide(x, y); }));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
