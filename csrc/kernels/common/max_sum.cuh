// Softmax's two reductions in one pass: the maximum of some elements, and the sum of their exponentials relative to it.
#pragma once

#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {

template <class A>
struct MaxSum {
  A maximum, sum;
};

// The result for no elements.
template <class A>
__device__ __forceinline__ MaxSum<A> nothing() {
  return {-static_cast<A>(INFINITY), A{0}};
}

// What to subtract before exp: if all elements are -inf, they must sum to 0, not to NaN.
template <class A>
__device__ __forceinline__ A finite_shift(A maximum) {
  return maximum == -static_cast<A>(INFINITY) ? A{0} : maximum;
}

struct MergeMaxSum {
  template <class A>
  __device__ __forceinline__ MaxSum<A> operator()(MaxSum<A> a, MaxSum<A> b) const {
    const A maximum = fmax(a.maximum, b.maximum), shift = finite_shift(maximum);
    return {maximum, a.sum * exp(a.maximum - shift) + b.sum * exp(b.maximum - shift)};
  }
};

// Over lanes, each sum is rescaled once, to the maximum of all. Pair by pair each step would take two exponentials.
template <class A>
__device__ __forceinline__ MaxSum<A> warp_reduce(MaxSum<A> own, MergeMaxSum, int lanes = kWarp) {
  const A maximum = warp_reduce(
      own.maximum, [](A a, A b) { return fmax(a, b); }, lanes);
  return {maximum, warp_reduce(own.sum * exp(own.maximum - finite_shift(maximum)), Add{}, lanes)};
}

// exp to the precision of T: for 16-bit types the hardware's approximate base-2 exponential is enough.
template <class T>
__device__ __forceinline__ accumulator_t<T> exp_as(accumulator_t<T> x) {
  if constexpr (sizeof(T) > 2) return exp(x);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(static_cast<float>(x) * 1.44269504f));
  return power;
}

// `own` extended by more elements of T: the sum is rescaled only once, to the maximum of all of them.
template <class T, int kCount, class A>
__device__ __forceinline__ MaxSum<A> with_elements(MaxSum<A> own, const A (&values)[kCount]) {
  A maximum = own.maximum;
#pragma unroll
  for (A value : values) maximum = fmax(maximum, value);
  const A shift = finite_shift(maximum);
  own = {maximum, own.sum * exp(own.maximum - shift)};
  A sum = 0;  // of these alone, so that the number of additions to own.sum is kCount times smaller
#pragma unroll
  for (A value : values) sum += exp_as<T>(value - shift);
  own.sum += sum;
  return own;
}

// Maximum and sum of the elements that a thread meets in a row of any length. Its accumulator takes few additions
// before it is merged into the total.
template <class A>
class LongMaxSum {
 public:
  template <class T, int kCount>
  __device__ __forceinline__ void add(const A (&values)[kCount]) {
    own_ = with_elements<T>(own_, values);
    if (++count_ % 32 > 0) return;
    total_ = value();
    own_ = nothing<A>();
  }
  __device__ __forceinline__ MaxSum<A> value() const { return MergeMaxSum{}(total_, own_); }

 private:
  MaxSum<A> total_ = nothing<A>(), own_ = nothing<A>();
  unsigned count_ = 0;
};

}  // namespace rooflab::kernels
