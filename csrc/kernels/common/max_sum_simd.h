// Softmax's two reductions for *_simd.cpp files: the maximum of a row, and the sum of its exponentials relative to it.
// Rows may be columns that lie side by side: then a lane is a column, so no step crosses lanes.
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

// The same of rows [begin, end) of neighbouring columns, kVectors vectors of them: vector v of row k is element(k, v),
// and keep(k, v, vector) is passed its exponentials.
template <class S, int kVectors, class Element, class Keep>
ROOFLAB_INLINE Sums<Simd<S>, kVectors> sum_exponentials_of_columns(int64_t begin, int64_t end, const Simd<S>* shift,
                                                                   Element element, Keep keep) {
  using Vectors = Sums<Simd<S>, kVectors>;
  PairwiseSum<Vectors> runs;
  Vectors run, none;
  for (int v = 0; v < kVectors; ++v) run.of[v] = none.of[v] = S(0);
  for (int64_t k = begin; k < end; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      const Simd<S> exponential = exp(element(k, v) - shift[v]);
      keep(k, v, exponential);
      run.of[v] = run.of[v] + exponential;
    }
    if ((k - begin) % kRun < kRun - 1) continue;
    runs.add(run);
    run = none;
  }
  return runs.total(run);
}

template <class S>
struct MaxSum {
  S maximum, sum;
};

// The elements of a row that are processed together: `block`, which stay in L1 between their maximum and their
// exponentials, or more, so that blocks are few, because their sums are added one after another.
ROOFLAB_INLINE int64_t block_length(int64_t d, int64_t block) {
  constexpr int64_t kBlocks = 32;
  return larger(block, parts_of(d, kBlocks));
}

// Maximum and sum in one pass over memory, block by block. A NaN makes the sum NaN.
template <class T, class S = typename ComputeOf<T>::type>
ROOFLAB_INLINE MaxSum<S> max_sum_row(const T* x, int64_t d) {
  constexpr int64_t kBlock = 2048;
  const int64_t length = block_length(d, kBlock);
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
