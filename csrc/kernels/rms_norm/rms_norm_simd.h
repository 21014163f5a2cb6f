// What the SIMD rungs that normalise rows share.
#pragma once

#include "kernels/common/row_simd.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Divides by the root mean square of a row, using two factors, because one alone may overflow.
template <class T>
struct RmsScale {
  SimdOf<T> unit, scale;
  ROOFLAB_INLINE SimdOf<T> operator()(SimdOf<T> x) const { return x * unit * scale; }
};

// Multiplies by 1 / sqrt(mean(x^2) + eps), where x is a row.
template <class T>
ROOFLAB_INLINE RmsScale<T> rms_scale(const T* x, int64_t d, double eps) {
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
  S mean = mean_square(1);
  const S unit = row_unit(mean + S(eps));
  if (unit != 1) mean = mean_square(unit);
  return {unit, S(1) / S(__builtin_sqrt(mean + S(eps) * unit * unit))};
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
