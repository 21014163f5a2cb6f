// A row of any length at any address, as the aligned vectors that lie wholly in it, and the few elements outside of
// them.
#pragma once

#include <algorithm>

#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

template <class T, int kWidth>
struct RowVectors {
  int64_t head, count;  // elements before the first vector; vectors
  int outside;          // elements that are in no vector, fewer than 2 * kWidth

  __device__ __forceinline__ RowVectors(const T* row, int64_t length) {
    const auto misplaced = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) / sizeof(T) % kWidth);
    head = min((kWidth - misplaced) % kWidth, length);
    count = (length - head) / kWidth;
    outside = static_cast<int>(length - count * kWidth);
  }

  // The positions in the row of a vector's first element, and of an element outside.
  __device__ __forceinline__ int64_t begin(int64_t vector) const { return head + vector * kWidth; }
  __device__ __forceinline__ int64_t outside_at(int k) const { return k < head ? k : k + count * kWidth; }
};

}  // namespace rooflab::kernels
