// What the SIMD rungs share that normalise a row.
#pragma once

#include "kernels/common/row_simd.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// 1 / sqrt(mean(x^2) + eps) of a row.
template <class T>
ROOFLAB_INLINE auto inverse_rms(const T* x, int64_t d, double eps) {
  using S = typename ComputeOf<T>::type;
  const auto mean_square = [&](S unit) __attribute__((always_inline)) {
    return sum_row<T>(
               d,
               [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
                 const SimdOf<T> value = load_lanes(x + i, lanes) * unit;
                 return value * value;
               }) /
           S(d);
  };
  S mean = mean_square(1), unit = 1;
  if (mean == S(__builtin_inf()) && sizeof(S) == 4) {  // squares from 2^128 on: of numbers made smaller
    unit = S(kSmallUnit);
    mean = mean_square(unit);
  }
  return unit / S(__builtin_sqrt(mean + S(eps) * unit * unit));
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
