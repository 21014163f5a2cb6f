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

// Adds numbers, or what has a +, in runs of 32, and the runs in runs of 32.
template <class T>
class LongSum {
 public:
  __device__ __forceinline__ void add(T value) {
    run_ = run_ + value;
    if (++count_ % kRun > 0) return;
    runs_ = runs_ + run_;
    run_ = T{};
    if (count_ % (kRun * kRun) > 0) return;
    total_ = total_ + runs_;
    runs_ = T{};
  }
  __device__ __forceinline__ T value() const { return total_ + (runs_ + run_); }

 private:
  static constexpr unsigned kRun = 32;
  T total_{}, runs_{}, run_{};
  unsigned count_ = 0;
};

// The sum of term(i) over the elements i < d that this thread of a block takes.
template <class Term>
__device__ __forceinline__ auto sum_of_thread(int64_t d, Term&& term) {
  LongSum<decltype(term(d))> sum;
  for (int64_t i = threadIdx.x; i < d; i += blockDim.x) sum.add(term(i));
  return sum.value();
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
