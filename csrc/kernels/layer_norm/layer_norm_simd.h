// What the SIMD rungs of layer_norm and of its backward share.
#pragma once

#include "kernels/common/row_simd.h"
#include "kernels/common/row_unit.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Gives the distances from a row's mean, times unit. A mean in the row's precision is too coarse where numbers are
// large and alike; `rest` is what it lacks, the mean of the distances from it.
template <class T>
struct Centred {
  using S = typename ComputeOf<T>::type;
  S unit, mean, rest = 0, variance = 0;

  ROOFLAB_INLINE SimdOf<T> operator()(SimdOf<T> x) const { return x * unit - mean - rest; }

  // Finds rest and variance. Returns the mean square that the variance is a part of.
  ROOFLAB_INLINE S correct(const T* x, int64_t d) {
    const auto sums = sums_of_row<T, 2>(
        d, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
          const SimdOf<T> distance = first_lanes(load_lanes(x + i, lanes) * unit - mean, lanes);
          sums.of[0] += distance;
          sums.of[1] += distance * distance;
        });
    rest = sums.of[0] / S(d);
    const S square = sums.of[1] / S(d), part = square - rest * rest;
    variance = part < 0 ? S(0) : part;
    return square;
  }
};

template <class T>
ROOFLAB_INLINE Centred<T> centred(const T* x, int64_t d, typename ComputeOf<T>::type unit) {
  using S = typename ComputeOf<T>::type;
  const S mean =
      sum_row<T>(
          d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(x + i, lanes) * unit; }) /
      S(d);
  Centred<T> row{unit, mean};
  const S square = row.correct(x, d);
  if (row.variance < square / 8) {  // the mean is off by more than the numbers differ
    row.mean += row.rest;
    row.correct(x, d);
  }
  return row;
}

// The same, times a unit that keeps squares in range.
template <class T>
ROOFLAB_INLINE Centred<T> centred_in_range(const T* x, int64_t d, double eps) {
  using S = typename ComputeOf<T>::type;
  Centred<T> row = centred(x, d, S(1));
  const S unit = row_unit(row.variance + S(eps), row.mean);
  if (unit != 1) row = centred(x, d, unit);
  return row;
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
