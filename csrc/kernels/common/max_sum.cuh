// Softmax's two sums in one pass: the maximum of some elements, and the sum of their exponentials relative to it.
#pragma once

#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {

template <class A>
struct MaxSum {
  A maximum, sum;
};

// Of no elements.
template <class A>
__device__ __forceinline__ MaxSum<A> nothing() {
  return {-static_cast<A>(INFINITY), A{0}};
}

// What to subtract before exp: elements that are all -inf shall sum to 0, not to NaN.
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

// exp to the precision of T: 16-bit types are content with the hardware's base-2 exponential.
template <class T>
__device__ __forceinline__ accumulator_t<T> exp_as(accumulator_t<T> x) {
  if constexpr (sizeof(T) > 2) return exp(x);
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(static_cast<float>(x) * 1.44269504f));
  return power;
}

// `own` with more elements of T: its sum is rescaled once, when their maximum is larger.
template <class T, int kCount, class A>
__device__ __forceinline__ MaxSum<A> with_elements(MaxSum<A> own, const A (&values)[kCount]) {
  A maximum = own.maximum;
#pragma unroll
  for (A value : values) maximum = fmax(maximum, value);
  const A shift = finite_shift(maximum);
  own = {maximum, own.sum * exp(own.maximum - shift)};
#pragma unroll
  for (A value : values) own.sum += exp_as<T>(value - shift);
  return own;
}

}  // namespace rooflab::kernels
