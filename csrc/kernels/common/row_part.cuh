// The part of a row that one of the blocks that share it works on (row_split.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/row_vectors.cuh"

namespace rooflab::kernels {

// Whole vectors of the row, which may begin anywhere. The first part has the few elements outside of them as well.
template <class T, int kWidth>
class RowPart {
 public:
  __device__ __forceinline__ RowPart(const T* row, int64_t d, int64_t part, int64_t parts)
      : vectors_(row, d),
        begin_(vectors_.count * part / parts),
        end_(vectors_.count * (part + 1) / parts),
        outside_(part == 0 ? vectors_.outside : 0) {}

  // Where in the row the thread begins; 0 if it has none of it.
  __device__ __forceinline__ int64_t first() const {
    const int64_t vector = begin_ + threadIdx.x;
    if (vector < end_) return vectors_.begin(vector);
    return static_cast<int>(threadIdx.x) < outside_ ? vectors_.outside_at(threadIdx.x) : 0;
  }

  // Calls take(at, width) for the threads of the block side by side, for `width` elements of the row from `at` on.
  template <class Take>
  __device__ __forceinline__ void walk(Take&& take) const {
#pragma unroll 4
    for (int64_t i = begin_ + threadIdx.x; i < end_; i += blockDim.x)
      take(vectors_.begin(i), std::integral_constant<int, kWidth>{});
    if (static_cast<int>(threadIdx.x) < outside_)
      take(vectors_.outside_at(threadIdx.x), std::integral_constant<int, 1>{});
  }

 private:
  RowVectors<T, kWidth> vectors_;
  int64_t begin_, end_;
  int outside_;
};

// Elements of a vector of parameters, which lies otherwise than the row where that does not begin at a multiple of 16.
template <int kWidth, class T>
__device__ __forceinline__ Vector<T, kWidth> load_anywhere(const T* from) {
  if (reinterpret_cast<uintptr_t>(from) % sizeof(Vector<T, kWidth>) == 0) return load_vector<kWidth>(from);
  Vector<T, kWidth> out;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) out[i] = from[i];
  return out;
}

}  // namespace rooflab::kernels
