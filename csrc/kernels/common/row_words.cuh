// A row of any length at any address, as the words of 16 bytes that it overlaps. The words at the row's ends hold
// elements of its neighbours, too. They are read whole where they lie within the same matrix, and written element by
// element.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

template <class T>
struct RowWords {
  static constexpr int kWidth = kVectorWidth<T>;
  int64_t length, first;         // of the row; the position of the first word's first element, at most 0
  int64_t count;                 // words
  int64_t readable, unreadable;  // positions from `readable` up to `unreadable` lie within the matrix

  // The row alone, or as one of `rows` rows that lie a stride apart, of which the first begins at `matrix`.
  __device__ __forceinline__ RowWords(const T* row, int64_t length) : RowWords(row, length, row, 1, 0) {}
  __device__ __forceinline__ RowWords(const T* row, int64_t length, const T* matrix, int64_t rows, int64_t stride)
      : length(length),
        first(-static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T))),
        count((length - first + kWidth - 1) / kWidth),
        readable(matrix - row),
        unreadable(readable + (rows - 1) * stride + length) {}

  // The position in the row of a word's first element.
  __device__ __forceinline__ int64_t begin(int64_t word) const { return first + word * kWidth; }

  // A word, of which elements outside the row may be any. To have several on their way, load them all before within(),
  // which makes these elements `fill`.
  __device__ __forceinline__ Packed<T, kWidth> load(const T* row, int64_t word) const {
    using Words = Packed<T, kWidth>;
    const int64_t at = begin(word);
    if (at >= readable && at + kWidth <= unreadable)
      return {load_vector<kWidth / Words::kEach, CachePolicy::kStreaming>(
          reinterpret_cast<const typename Words::Word*>(row + at))};
    return Words::of([&](int i) { return row[min(max(at + i, int64_t{0}), length - 1)]; });
  }
  __device__ __forceinline__ Packed<T, kWidth> within(const Packed<T, kWidth>& loaded, int64_t word, T fill) const {
    const int64_t at = begin(word);
    if (at >= 0 && at + kWidth <= length) return loaded;
    return Packed<T, kWidth>::of([&](int i) { return at + i >= 0 && at + i < length ? loaded[i] : fill; });
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
