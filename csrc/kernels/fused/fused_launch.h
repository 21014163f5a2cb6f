// The parameters of a kernel that is generated for a chain. The host fills them in, and NVRTC compiles this header too.
#pragma once

#include "core/shape.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels {

inline constexpr int kMaxFusedOperands = 16;
inline constexpr int kMaxFusedNumbers = 64;
inline constexpr int kMaxFusedResults = 8;  // of elements and of rows
inline constexpr int kMaxFusedColumnSums = 2;
inline constexpr int kFusedThreads = 128;      // per block, where a row does not need more
inline constexpr int kFusedSumThreads = 1024;  // per block that adds partial sums of columns

struct FusedOperand {
  const void* data;
  int64_t strides[kMaxDims];  // of each dimension, in elements; 0 where it broadcasts
};

struct FusedLaunch {
  int64_t count;    // elements: rows of `columns` each
  int64_t rows;     // count / columns
  int64_t columns;  // elements per reduction; 1 where there is none
  int row_ndim;     // how many of the dimensions count rows
  int ndim;         // at least 1; neighbours that are evenly spaced in all arrays are one
  int64_t sizes[kMaxDims];
  FusedOperand operands[kMaxFusedOperands];
  void* results[kMaxFusedResults];  // contiguous
  void* column_sums[kMaxFusedColumnSums];
  ElementwiseScalar numbers[kMaxFusedNumbers];
};

}  // namespace rooflab::kernels
