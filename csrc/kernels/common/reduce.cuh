// Reductions of one value per thread over a warp and over a block. Every thread gets the result. The order of the
// operations depends on the launch shape alone, so a result is the same on every run.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/common/cuda_types.cuh"

namespace rooflab::kernels {

constexpr int kWarp = 32;

// The type in which sums of T are accumulated: float, and double for double.
template <class T>
using accumulator_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// An accumulated value as an element of T.
template <class T, class A>
__device__ __forceinline__ T round_to(A value) {
  if constexpr (std::is_same_v<T, double>)
    return value;
  else
    return from_float<T>(std::is_same_v<A, double> && sizeof(T) == 2 ? round_to_odd(value) : static_cast<float>(value));
}

// The value of the lane whose number differs in the bits of `mask`; T is any trivially copyable type of whole words.
template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  static_assert(sizeof(T) % 4 == 0);
  unsigned words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (unsigned& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  memcpy(&value, words, sizeof(T));
  return value;
}

// Reduces over aligned groups of `lanes` lanes (a power of two); the whole warp must call this.
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op, int lanes = kWarp) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask >>= 1)
    if (mask < lanes) value = op(value, shuffle_xor(value, mask));
  return value;
}

// Reduces over a block of whole warps, numbered along x. Successive calls alternate between the two halves of the
// scratch, so one __syncthreads per call is enough: no call can overwrite what a slower thread still reads from the
// previous one.
template <class T>
class BlockReduction {
 public:
  struct Scratch {
    T partial[2][kWarp];
  };

  __device__ explicit BlockReduction(Scratch& scratch) : scratch_(scratch) {}

  // `value` is already reduced over each warp; `identity` fills the idle lanes of the last step.
  template <class Op>
  __device__ __forceinline__ T across_warps(T value, T identity, Op op) {
    const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    T(&partial)[kWarp] = scratch_.partial[half_];
    half_ ^= 1;
    if (lane == 0) partial[warp] = value;
    __syncthreads();
    return warp_reduce(lane < warps ? partial[lane] : identity, op);
  }

  template <class Op>
  __device__ __forceinline__ T reduce(T value, T identity, Op op) {
    return across_warps(warp_reduce(value, op), identity, op);
  }

 private:
  Scratch& scratch_;
  int half_ = 0;
};

struct Add {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

// The larger, and the smaller, of two; a NaN wins over any number.
struct Max {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace rooflab::kernels
