// What the kernels generated for chains have in common: where an element lies, and how it gets from memory to the type
// that it is computed in. Compiled only by NVRTC, without any CUDA headers.
#pragma once

#include "kernels/common/strided.h"
#include "kernels/elementwise/functors.h"
#include "kernels/fused/fused_launch.h"

namespace rooflab::kernels {

template <class T>
constexpr bool kIsSmall = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
using compute_t = std::conditional_t<kIsSmall<T>, float, T>;

__device__ __forceinline__ float widen(Half x) {
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
}
__device__ __forceinline__ float widen(BFloat16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
template <class T>
__device__ __forceinline__ T widen(T x) {
  return x;
}

template <class T>
__device__ __forceinline__ T narrow(compute_t<T> x) {
  T small;
  if constexpr (std::is_same_v<T, Half>) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(small.bits) : "f"(x));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(small.bits) : "f"(x));
#else
    small = BFloat16(x);
#endif
  } else {
    small = x;
  }
  return small;
}

// A cast in a chain: rounds as a tensor of type To would, and continues in the type in which To is computed.
template <class To, class From>
__device__ __forceinline__ compute_t<To> cast_to(From x) {
  if constexpr (!kIsSmall<To>)
    return convert<To>(x);
  else if constexpr (std::is_same_v<From, float> || std::is_same_v<From, bool>)
    return widen(narrow<To>(static_cast<float>(x)));
  else
    return widen(narrow<To>(round_to_odd(std::conditional_t<std::is_integral_v<From>, int64_t, double>(x))));
}

// A product that the compiler never contracts with a sum. What is reduced has to be the same number in each pass.
__device__ __forceinline__ float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double rounded_product(double a, double b) { return __dmul_rn(a, b); }

// kWidth neighbours, moved by one access.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T values[kWidth];
};

// The offset in an operand of index i of its dimensions [first, last), taken as one.
__device__ __forceinline__ int64_t place_of(const FusedLaunch& launch, const FusedOperand& operand, int first, int last,
                                            int64_t i) {
  int64_t offset = 0;
  for (int d = last - 1; d >= first; --d) {
    int64_t index = i;
    if (d > first) i = divide(i, launch.sizes[d], index);
    offset += index * operand.strides[d];
  }
  return offset;
}

// kWidth elements from a place on, of which `valid` exist.
template <class T, int kWidth>
__device__ __forceinline__ Pack<T, kWidth> load(const FusedLaunch& launch, const FusedOperand& operand, const T* from,
                                                int valid) {
  Pack<T, kWidth> pack;
  if (operand.strides[launch.ndim - 1] == 0) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.values[i] = *from;
  } else if (valid == kWidth) {
    pack = *reinterpret_cast<const Pack<T, kWidth>*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) pack.values[i] = from[i < valid ? i : 0];
  }
  return pack;
}

// Where element `begin` of the results lies in an operand.
template <class T>
__device__ __forceinline__ const T* at_element(const FusedLaunch& launch, const FusedOperand& operand, int64_t begin) {
  return static_cast<const T*>(operand.data) + place_of(launch, operand, 0, launch.ndim, begin);
}

// Where a row begins.
template <class T>
__device__ __forceinline__ const T* at_row(const FusedLaunch& launch, const FusedOperand& operand, int64_t row) {
  return static_cast<const T*>(operand.data) + place_of(launch, operand, 0, launch.row_ndim, row);
}

// The row that a thread works on: a block has one row, or, if kThreads <= 32, one for every kThreads threads. Threads
// beyond the last row repeat it.
template <int kThreads>
__device__ __forceinline__ int64_t own_row(const FusedLaunch& launch) {
  if constexpr (kThreads > 32) return blockIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * (kFusedThreads / kThreads) + threadIdx.x / kThreads;
  return row < launch.rows ? row : launch.rows - 1;
}

// Reads the packs of a row that begin at `column` and kStep columns further each, as far as it has so many. All loads
// are under way together.
template <int kStep, bool kIsEven, bool kIsFlat, class T, int kWidth, int kPacks>
__device__ __forceinline__ void load_packs(const FusedLaunch& launch, const FusedOperand& operand, const T* row,
                                           int column, Pack<T, kWidth> (&packs)[kPacks]) {
  const int columns = static_cast<int>(launch.columns);
#pragma unroll
  for (int p = 0; p < kPacks; ++p, column += kStep) {
    if (!kIsEven && column >= columns) break;
    const int64_t place = kIsFlat ? column * operand.strides[launch.ndim - 1]
                                  : place_of(launch, operand, launch.row_ndim, launch.ndim, column);
    if constexpr (kIsFlat)
      packs[p] = *reinterpret_cast<const Pack<T, kWidth>*>(row + place);
    else
      packs[p] = load<T, kWidth>(launch, operand, row + place, kWidth);
  }
}

template <class T, int kWidth>
__device__ __forceinline__ void store(void* result, int64_t begin, int valid, const Pack<T, kWidth>& pack) {
  T* to = static_cast<T*>(result) + begin;
  if (valid == kWidth) {
    *reinterpret_cast<Pack<T, kWidth>*>(to) = pack;
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      if (i < valid) to[i] = pack.values[i];
  }
}

constexpr float kInfinity = std::bit_cast<float>(0x7f800000);

// Reductions. A NaN counts as both the largest and the smallest.
struct Total {
  template <class T>
  static __device__ __forceinline__ T join(T a, T b) {
    return a + b;
  }
};
struct Largest {
  template <class T>
  static __device__ __forceinline__ T join(T a, T b) {
    return b > a || b != b ? b : a;
  }
};
struct Smallest {
  template <class T>
  static __device__ __forceinline__ T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
};

template <class R, int kLanes, class T>
__device__ __forceinline__ T join_lanes(T value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    value = R::join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  return value;
}

// Combines the values of the kThreads threads of a row; all of them get the result.
template <class R, int kThreads, class T>
__device__ T join_row(T value) {
  value = join_lanes < R, kThreads < 32 ? kThreads : 32 > (value);
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    __shared__ T of_warps[kWarps];
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = join_lanes<R, kWarps>(of_warps[threadIdx.x % kWarps]);
    __syncthreads();  // the next reduction reuses this memory
  }
  return value;
}

}  // namespace rooflab::kernels
