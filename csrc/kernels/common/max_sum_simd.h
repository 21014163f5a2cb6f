// Softmax's two reductions for *_simd.cpp files: the maximum of a row, and the sum of its exponentials relative to it.
#pragma once

#include "kernels/common/row_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The sum of exp(x - shift) over a row. Each vector of exponentials is also passed to keep(i, n, vector).
template <class T, class S, class Keep>
ROOFLAB_INLINE S sum_exponentials(const T* x, int64_t d, S shift, Keep keep) {
  return sum_row<T>(
      d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        const SimdOf<T> exponential = first_lanes(exp(load_lanes(x + i, lanes) - shift), lanes);
        keep(i, lanes, exponential);
        return exponential;
      });
}

template <class S>
struct MaxSum {
  S maximum, sum;
};

// Maximum and sum in one pass over memory, block by block. A NaN makes the sum NaN.
template <class T, class S = typename ComputeOf<T>::type>
ROOFLAB_INLINE MaxSum<S> max_sum_row(const T* x, int64_t d) {
  constexpr int64_t kBlock = 2048;  // elements that stay in L1 between their maximum and their exponentials
  constexpr int64_t kBlocks = 32;   // so few at most, because their sums are added one after another
  const int64_t length = larger(kBlock, parts_of(d, kBlocks));
  S maximum = -__builtin_inf(), sum = 0;
  for (int64_t begin = 0; begin < d; begin += length) {
    const int64_t size = smaller(d - begin, length);
    const S last = maximum, block = extreme_row<true, false>(x + begin, size);
    maximum = block > last ? block : last;
    const S shift = maximum == S(-__builtin_inf()) ? S(0) : maximum;  // all -inf so far: their sum is 0
    sum = sum * __builtin_exp(last - shift) +
          sum_exponentials(x + begin, size, shift, [](int64_t, int64_t, SimdOf<T>) {});
  }
  return {maximum, sum};
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
