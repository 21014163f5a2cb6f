// A row of any length at any address, as the words of 16 bytes that it overlaps. A word that lies wholly in the row is
// moved at once; those at the row's ends are moved element by element.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

template <class T>
struct RowWords {
  static constexpr int kWidth = kVectorWidth<T>;
  int64_t length, first;  // of the row; the position of the first word's first element, at most 0
  int64_t count;          // words

  __device__ __forceinline__ RowWords(const T* row, int64_t length)
      : length(length),
        first(-static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T))),
        count((length - first + kWidth - 1) / kWidth) {}

  // The position in the row of a word's first element.
  __device__ __forceinline__ int64_t begin(int64_t word) const { return first + word * kWidth; }

  // Elements outside the row become `fill`.
  __device__ __forceinline__ Vector<T, kWidth> load(const T* row, int64_t word, T fill) const {
    const int64_t at = begin(word);
    if (at >= 0 && at + kWidth <= length) return load_vector<kWidth, CachePolicy::kStreaming>(row + at);
    Vector<T, kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[i] = at + i >= 0 && at + i < length ? row[at + i] : fill;
    return out;
  }

  __device__ __forceinline__ void store(T* row, int64_t word, const Vector<T, kWidth>& values) const {
    const int64_t at = begin(word);
    if (at >= 0 && at + kWidth <= length) return store_vector<CachePolicy::kStreaming>(row + at, values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i)
      if (at + i >= 0 && at + i < length) row[at + i] = values[i];
  }
};

}  // namespace rooflab::kernels
