// Whether memory can be accessed 16 bytes at a time, the most that one load or store of a CUDA thread moves.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace rooflab::kernels {

inline bool is_aligned(const void* pointer, int64_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// True when every row begins and ends at a multiple of 16 bytes.
inline bool rows_have_vectors(DType dtype, int64_t d, const void* x, int64_t x_row_stride, const void* y) {
  const int64_t size = size_of(dtype);
  return d * size % 16 == 0 && x_row_stride * size % 16 == 0 && is_aligned(x) && is_aligned(y);
}

// True when each of n rows of x begins as far behind a multiple of 16 bytes as that of y: then the same elements of
// both are vectors (common/row_vectors.cuh).
inline bool rows_lie_alike(int64_t element_bytes, int64_t n, const void* x, int64_t x_row_stride, const void* y,
                           int64_t y_row_stride) {
  const int64_t apart = reinterpret_cast<intptr_t>(y) - reinterpret_cast<intptr_t>(x);
  return apart % 16 == 0 && ((y_row_stride - x_row_stride) * element_bytes % 16 == 0 || n == 1);
}

// True when the rungs of common/row_tile.cuh can hold rows in registers: not double, short enough, and in vectors.
inline constexpr int kMaxRowThreads = 1024;  // of a block with one row; each thread holds 32 elements
inline constexpr int64_t kMaxRowElements = 32 * kMaxRowThreads;
inline constexpr int64_t kMaxElementRow = 16 * kMaxRowThreads / 2;  // of rows that they hold element by element
inline bool rows_fit_tile(DType dtype, int64_t d, const void* x, int64_t x_row_stride, const void* y) {
  return dtype != DType::kFloat64 && d <= kMaxRowElements && rows_have_vectors(dtype, d, x, x_row_stride, y);
}

}  // namespace rooflab::kernels
