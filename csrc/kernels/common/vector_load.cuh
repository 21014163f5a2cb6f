// Vectors of consecutive elements that one memory instruction moves: only 16 bytes per thread saturate the bus.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/cuda_types.cuh"

namespace rooflab::kernels {

// How many elements of T one 16-byte access moves.
template <class T>
constexpr int kVectorWidth = 16 / static_cast<int>(sizeof(T));

// kWidth elements of T, at an address that is a multiple of their total size (of 16 bytes at most).
template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Vector {
  static_assert((kWidth & (kWidth - 1)) == 0, "a power of two");
  T values[kWidth];

  __device__ __forceinline__ T& operator[](int i) { return values[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return values[i]; }
};

// kCached: the default. kStreaming: data that is read or written once, so it should not evict other data.
enum class CachePolicy { kCached, kStreaming };

namespace vector_detail {

template <int kBytes>
struct Word {
  using type = uint4;
};
template <>
struct Word<1> {
  using type = uint8_t;
};
template <>
struct Word<2> {
  using type = uint16_t;
};
template <>
struct Word<4> {
  using type = uint32_t;
};
template <>
struct Word<8> {
  using type = uint2;
};

}  // namespace vector_detail

template <int kWidth, CachePolicy kPolicy = CachePolicy::kCached, class T>
__device__ __forceinline__ Vector<T, kWidth> load_vector(const T* from) {
  using W = typename vector_detail::Word<sizeof(T) * kWidth>::type;
  Vector<T, kWidth> out;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(out) / sizeof(W)); ++i) {
    const W* word = reinterpret_cast<const W*>(from) + i;
    reinterpret_cast<W*>(&out)[i] = kPolicy == CachePolicy::kStreaming ? __ldcs(word) : *word;
  }
  return out;
}

template <CachePolicy kPolicy = CachePolicy::kCached, class T, int kWidth>
__device__ __forceinline__ void store_vector(T* to, const Vector<T, kWidth>& vector) {
  using W = typename vector_detail::Word<sizeof(T) * kWidth>::type;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(vector) / sizeof(W)); ++i) {
    const W value = reinterpret_cast<const W*>(&vector)[i];
    if constexpr (kPolicy == CachePolicy::kStreaming)
      __stcs(reinterpret_cast<W*>(to) + i, value);
    else
      reinterpret_cast<W*>(to)[i] = value;
  }
}

// kWidth elements, which stay in words of 32 bits until one is asked for. Where branches join, the compiler takes
// smaller elements out of a vector at once: it waits for one load before it issues the next.
template <class T, int kWidth>
struct Packed {
  static constexpr int kEach = sizeof(T) < 4 && sizeof(T) * kWidth % 4 == 0 ? 4 / static_cast<int>(sizeof(T)) : 1;
  using Word = std::conditional_t<kEach == 1, T, uint32_t>;
  Vector<Word, kWidth / kEach> words;

  __device__ __forceinline__ T operator[](int i) const {
    const Word word = words[i / kEach];
    return reinterpret_cast<const Vector<T, kEach>&>(word)[i % kEach];
  }
  // Element i is element(i).
  template <class Element>
  __device__ __forceinline__ static Packed of(Element&& element) {
    Packed out;
#pragma unroll
    for (int w = 0; w < kWidth / kEach; ++w) {
      Vector<T, kEach> parts;
#pragma unroll
      for (int i = 0; i < kEach; ++i) parts[i] = element(w * kEach + i);
      out.words[w] = reinterpret_cast<const Word&>(parts);
    }
    return out;
  }
};

// The first `valid` elements; the others are the first once more.
template <int kWidth, class T>
__device__ __forceinline__ Packed<T, kWidth> load_first(const T* from, int valid) {
  using Words = Packed<T, kWidth>;
  if (valid == kWidth) return {load_vector<kWidth / Words::kEach>(reinterpret_cast<const Words::Word*>(from))};
  return Words::of([&](int i) { return from[i < valid ? i : 0]; });
}

// Stores the first `valid` elements.
template <class T, int kWidth>
__device__ __forceinline__ void store_first(T* to, const Vector<T, kWidth>& vector, int valid) {
  if (valid == kWidth) return store_vector(to, vector);
#pragma unroll
  for (int i = 0; i < kWidth; ++i)
    if (i < valid) to[i] = vector[i];
}

// Sets all elements, by whole words: setting half a word would make the compiler take the other words apart as well.
template <class T, int kWidth>
__device__ __forceinline__ void fill_vector(Vector<T, kWidth>& vector, T value) {
  if constexpr (sizeof(T) < 4 && sizeof(vector) % 4 == 0) {
    const Vector<T, 4 / sizeof(T)> word = [&] {
      Vector<T, 4 / sizeof(T)> all;
      for (T& element : all.values) element = value;
      return all;
    }();
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(vector) / 4); ++i)
      reinterpret_cast<uint32_t*>(&vector)[i] = reinterpret_cast<const uint32_t&>(word);
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) vector[i] = value;
  }
}

// Converts to float. A bfloat16 is the upper half of a float: extracting it costs one instruction from the word of its
// pair, and two on its own.
template <class T, int kWidth>
__device__ __forceinline__ Vector<float, kWidth> to_float(const Vector<T, kWidth>& vector) {
  Vector<float, kWidth> out;
  if constexpr (std::is_same_v<T, __nv_bfloat16> && kWidth % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const uint32_t pair = *reinterpret_cast<const uint32_t*>(&vector[i]);
      out[i] = __uint_as_float(pair << 16);
      out[i + 1] = __uint_as_float(pair & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[i] = to_float(vector[i]);
  }
  return out;
}

template <class T, int kWidth>
__device__ __forceinline__ Vector<T, kWidth> from_float(const Vector<float, kWidth>& vector) {
  Vector<T, kWidth> out;
  if constexpr (sizeof(T) == 2 && kWidth % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kWidth; i += 2) {
      const float2 pair = make_float2(vector[i], vector[i + 1]);
      if constexpr (std::is_same_v<T, __half>)
        *reinterpret_cast<__half2*>(&out[i]) = __float22half2_rn(pair);
      else
        *reinterpret_cast<__nv_bfloat162*>(&out[i]) = __float22bfloat162_rn(pair);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[i] = from_float<T>(vector[i]);
  }
  return out;
}

}  // namespace rooflab::kernels
