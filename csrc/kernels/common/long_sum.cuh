// Sums of any length in one thread. Each accumulator takes few additions before it is folded into the next one, so that
// rounding errors stay small however many numbers there are, and however alike.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

// kCount sums that are formed and reduced together, in the steps of one.
template <class A, int kCount>
struct Sums {
  A of[kCount];
};
template <class A, int kCount>
__device__ __forceinline__ Sums<A, kCount> operator+(Sums<A, kCount> x, const Sums<A, kCount>& y) {
#pragma unroll
  for (int k = 0; k < kCount; ++k) x.of[k] += y.of[k];
  return x;
}

// The sum of term(i) over the elements i < d that this thread of a block takes, in runs of 32, and runs of 32 runs.
// Only the loops around the innermost one know of runs, so that this one stays as fast as a plain sum.
template <class Term>
__device__ __forceinline__ auto sum_of_thread(int64_t d, Term&& term) {
  using T = decltype(term(d));
  const int64_t step = blockDim.x, run_length = 32 * step;
  T total{};
  for (int64_t i = threadIdx.x; i < d;) {
    T runs{};
    for (const int64_t end = min(d, i + 32 * run_length); i < end;) {
      T run{};
      for (const int64_t stop = min(end, i + run_length); i < stop; i += step) run = run + term(i);
      runs = runs + run;
    }
    total = total + runs;
  }
  return total;
}

// The sum over v < kVectors and i < kWidth of term(v, i), vector by vector.
template <int kVectors, int kWidth, class Term>
__device__ __forceinline__ auto sum_of_vectors(Term&& term) {
  decltype(term(0, 0)) sum{};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    auto of_vector = term(v, 0);
#pragma unroll
    for (int i = 1; i < kWidth; ++i) of_vector = of_vector + term(v, i);
    sum = sum + of_vector;
  }
  return sum;
}

// Reduces over the threads of a row: a group of lanes, or the block.
template <bool kBlockPerRow, class T>
__device__ __forceinline__ T reduce_row(T sum, BlockReduction<T>& block) {
  sum = warp_reduce(sum, Add{}, kBlockPerRow ? kWarp : blockDim.x);
  if constexpr (kBlockPerRow) sum = block.across_warps(sum, T{}, Add{});
  return sum;
}

// A mean square less the square of the mean: it may come out a little below 0. A NaN stays.
template <class A>
__device__ __forceinline__ A above_zero(A variance) {
  return variance < 0 ? A{0} : variance;
}

}  // namespace rooflab::kernels
