#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

// C[b, i, j] = sum_k A[b, i, k] * B[b, k, j]. Strides are in elements; C is contiguous. A batch stride of 0 repeats a matrix.
struct MatmulArgs {
  const void* a;  // (batch, M, K)
  const void* b;  // (batch, K, N)
  void* c;        // (batch, M, N)
  int64_t batch, m, n, k;
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  int64_t b_batch_stride, b_row_stride, b_col_stride;
  DType dtype;
};

}  // namespace rooflab::kernels
