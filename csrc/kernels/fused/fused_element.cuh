// What the kernels generated for chains have in common: where an element lies, and how it gets from memory to the type
// that it is computed in. Compiled only by NVRTC, without any CUDA headers.
#pragma once

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

// Products and sums that the compiler never contracts. What is reduced has to be the same number in each pass.
__device__ __forceinline__ float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double rounded_product(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float rounded_sum(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double rounded_sum(double a, double b) { return __dadd_rn(a, b); }

// A quotient that is rounded to 16 bits in the end, or lies between such numbers in a chain: to two units in the last
// place of float. Correct rounding to float takes a branch for each element.
__device__ __forceinline__ float quotient_of_16_bits(float a, float b) {
  float quotient;
  asm("div.full.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
  return quotient;
}

// The hardware's exponential, for the same: what it gives below the smallest normal float is 0.
__device__ __forceinline__ float exp_of_16_bits(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.44269504f));
  return power;
}

// kWidth neighbours to store, by one access.
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T values[kWidth];
};

// kWidth neighbours that were loaded, by one access where they are 4 bytes or more. They stay in words of 32 bits until
// one is asked for: where branches join, the compiler takes smaller elements out of a word at once, so that it waits
// for one load before it issues the next.
template <class T, int kWidth>
struct Packed {
  static constexpr bool kIsSmaller = sizeof(T) < 4;
  static constexpr int kEach = kIsSmaller && sizeof(T) * kWidth % 4 == 0 ? 4 / static_cast<int>(sizeof(T)) : 1;
  static constexpr int kWords = kWidth / kEach;
  using Word = std::conditional_t<kIsSmaller, uint32_t, T>;
  using Bits = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;  // of a smaller element
  struct alignas(sizeof(Word) * kWords) Words {
    Word of[kWords];
  };
  Words words;

  static __device__ __forceinline__ Packed load(const T* from) {
    if constexpr (sizeof(Words) == sizeof(T) * kWidth)
      return {*reinterpret_cast<const Words*>(from)};
    else
      return make([&](int i) { return from[i]; });
  }
  // Element i is element(i).
  template <class Element>
  static __device__ __forceinline__ Packed make(Element element) {
    Packed packed{};
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if constexpr (kIsSmaller)
        packed.words.of[i / kEach] |= static_cast<Word>(std::bit_cast<Bits>(element(i))) << shift(i);
      else
        packed.words.of[i] = element(i);
    }
    return packed;
  }
  __device__ __forceinline__ T operator[](int i) const {
    if constexpr (kIsSmaller)
      return std::bit_cast<T>(static_cast<Bits>(words.of[i / kEach] >> shift(i)));
    else
      return words.of[i];
  }

  static __device__ __forceinline__ int shift(int i) { return i % kEach * 8 * static_cast<int>(sizeof(T)); }
};

// The index of an element in each of some dimensions.
template <int kDims, class Index>
struct Place {
  Index index[kDims > 0 ? kDims : 1];
};

// Where element i of the dimensions [kFirst, kFirst + kDims), taken as one, lies in each of them.
template <int kFirst, int kDims, class Index>
__device__ __forceinline__ Place<kDims, Index> place_of(const FusedLaunch& launch, Index i) {
  Place<kDims, Index> place{};
#pragma unroll
  for (int d = kDims - 1; d > 0; --d) {
    const Index size = static_cast<Index>(launch.sizes[kFirst + d]), rest = i / size;
    place.index[d] = i - rest * size;
    i = rest;
  }
  if constexpr (kDims > 0) place.index[0] = i;
  return place;
}

// The place of the next element in the order of the results.
template <int kDims, class Index>
__device__ __forceinline__ Place<kDims, Index> place_after(const FusedLaunch& launch, Place<kDims, Index> place) {
  bool carries = true;
#pragma unroll
  for (int d = kDims - 1; d >= 0; --d) {
    const Index next = place.index[d] + carries;
    carries = d > 0 && next == static_cast<Index>(launch.sizes[d]);
    place.index[d] = carries ? 0 : next;
  }
  return place;
}

// The address of an element of an operand. kRepeats: bit d where it has stride 0. kIsAdjacent: neighbours in the last
// dimension are 1 apart, as they are in packs.
template <class T, int kFirst, int kRepeats, bool kIsAdjacent, int kDims, class Index>
__device__ __forceinline__ const T* find(const FusedOperand& operand, const T* from, const Place<kDims, Index>& place) {
#pragma unroll
  for (int d = 0; d < kDims; ++d)
    if (!(kRepeats >> (kFirst + d) & 1)) {
      const bool is_next = kIsAdjacent && d == kDims - 1;
      from += static_cast<int64_t>(place.index[d]) * (is_next ? 1 : operand.strides[kFirst + d]);
    }
  return from;
}

// kWidth neighbours, of which `valid` exist. The others are the first once more.
template <class T, int kWidth>
__device__ __forceinline__ Packed<T, kWidth> load_neighbours(const T* from, int valid) {
  if (valid == kWidth) return Packed<T, kWidth>::load(from);
  return Packed<T, kWidth>::make([&](int i) { return from[i < valid ? i : 0]; });
}

template <class T, int kWidth>
__device__ __forceinline__ Packed<T, kWidth> repeated(T value) {
  return Packed<T, kWidth>::make([&](int) { return value; });
}

// Elements of an operand for kWidth results, of which `valid` exist.
template <class T, int kWidth, int kRepeats, int kDims, class Index>
__device__ __forceinline__ Packed<T, kWidth> load(const FusedOperand& operand, const Place<kDims, Index>& place,
                                                  int valid) {
  const T* from = find<T, 0, kRepeats, (kWidth > 1)>(operand, static_cast<const T*>(operand.data), place);
  if constexpr (kRepeats >> (kDims - 1) & 1)
    return repeated<T, kWidth>(*from);
  else
    return load_neighbours<T, kWidth>(from, valid);
}

// The same, one by one: they may belong to several rows, and need not be aligned for one access.
template <class T, int kWidth, int kRepeats, int kDims, class Index>
__device__ __forceinline__ Packed<T, kWidth> load_loose(const FusedLaunch& launch, const FusedOperand& operand,
                                                        Place<kDims, Index> place, int valid) {
  return Packed<T, kWidth>::make([&](int i) {
    const T* from = find<T, 0, kRepeats, (kWidth > 1)>(operand, static_cast<const T*>(operand.data), place);
    const auto next = place_after(launch, place);
    if (i + 1 < valid) place = next;
    return *from;
  });
}

// A block works on one row at a time, or, if kThreads <= 32, on one for every kThreads threads.
template <int kThreads>
constexpr int kBlockRows = kThreads > 32 ? 1 : kFusedThreads / kThreads;

// The row that a thread works on, of those from `first` on. Threads beyond the last row repeat it.
template <int kThreads>
__device__ __forceinline__ int64_t own_row(const FusedLaunch& launch, int64_t first) {
  if constexpr (kThreads > 32) return first;
  const int64_t row = first + threadIdx.x / kThreads;
  return row < launch.rows ? row : launch.rows - 1;
}

// Reads the packs of a row that begin at `column` and kStep columns further each, as far as the row has them. The first
// kWhole exist for all threads.
template <int kStep, int kWhole, int kRowDims, int kDims, int kRepeats, bool kIsAdjacent, class T, int kWidth,
          int kPacks>
__device__ __forceinline__ void load_packs(const FusedLaunch& launch, const FusedOperand& operand, const T* row,
                                           int column, Packed<T, kWidth> (&packs)[kPacks]) {
#pragma unroll
  for (int p = 0; p < kPacks; ++p, column += kStep) {
    packs[p] = {};
    if (p >= kWhole && column >= static_cast<int>(launch.columns)) continue;
    const auto place = place_of<kRowDims, kDims - kRowDims>(launch, static_cast<uint32_t>(column));
    const T* from = find<T, kRowDims, kRepeats, kIsAdjacent>(operand, row, place);
    if constexpr (kRepeats >> (kDims - 1) & 1)
      packs[p] = repeated<T, kWidth>(*from);
    else
      packs[p] = Packed<T, kWidth>::load(from);
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
  static __device__ __forceinline__ float join(float a, float b) {
#if __CUDA_ARCH__ >= 800
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
#else
    return join<float>(a, b);
#endif
  }
};
struct Smallest {
  template <class T>
  static __device__ __forceinline__ T join(T a, T b) {
    return b < a || b != b ? b : a;
  }
  static __device__ __forceinline__ float join(float a, float b) {
#if __CUDA_ARCH__ >= 800
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
#else
    return join<float>(a, b);
#endif
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

// The sum over the rows that a block works on at a time, where these are several, of what their threads hold.
template <int kThreads, class T>
__device__ T add_rows_of_block(T value) {
#pragma unroll
  for (int distance = kThreads; distance < 32; distance *= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  constexpr int kWarps = kFusedThreads / 32;
  __shared__ T of_warps[kWarps][kThreads];
  if (threadIdx.x % 32 < kThreads) of_warps[threadIdx.x / 32][threadIdx.x % 32] = value;
  __syncthreads();
  value = 0;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value += of_warps[warp][threadIdx.x % kThreads];
  __syncthreads();  // the next column reuses this memory
  return value;
}

// Leaves what the threads of a block have for the columns in the block's row of the partial sums of number k. Those of
// each number are (blocks, columns).
template <int kThreads, class T, int kWidth, int kPacks>
__device__ void store_column_sums(const FusedLaunch& launch, void* partial, int k, T (&sums)[kPacks][kWidth]) {
  T* own = static_cast<T*>(partial) + (int64_t{k} * gridDim.x + blockIdx.x) * launch.columns;
#pragma unroll
  for (int p = 0; p < kPacks; ++p)
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if constexpr (kThreads <= 32) sums[p][i] = add_rows_of_block<kThreads>(sums[p][i]);
      const int64_t column = (p * kThreads + threadIdx.x) * kWidth + i;
      if (threadIdx.x < kThreads && column < launch.columns) own[column] = sums[p][i];
    }
}

// The second stage: for each column of the sum of number k the sum over all `blocks`, in double. A warp reads 32
// neighbours, and the warps of a block share the rows of partial sums.
template <class T>
__device__ void add_blocks(const FusedLaunch& launch, const void* partial, int64_t blocks, int k) {
  constexpr int kWarps = kFusedSumThreads / 32;
  __shared__ double of_warps[kWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = blockIdx.x * int64_t{32} + lane;
  const auto* from = static_cast<const compute_t<T>*>(partial) + k * blocks * launch.columns + column;
  double sum = 0;
  if (column < launch.columns)
#pragma unroll 8
    for (int64_t block = warp; block < blocks; block += kWarps) sum += from[block * launch.columns];
  of_warps[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= launch.columns) return;
#pragma unroll
  for (int w = 1; w < kWarps; ++w) sum += of_warps[w][lane];
  static_cast<T*>(launch.column_sums[k])[column] = narrow<T>(cast_to<T>(sum));
}

}  // namespace rooflab::kernels
