// The operands of a product of two matrices, as kernels take them.
#pragma once

#include "core/tensor.h"
#include "kernels/matmul/matmul.h"

namespace rooflab {

// Of a (M, K) and b (K, N), with any strides; all but where the result lies.
inline kernels::MatmulArgs matrix_operands(const Tensor& a, const Tensor& b) {
  return {.a = a.data(),
          .b = b.data(),
          .c = nullptr,
          .batch = 1,
          .m = a.size(0),
          .n = b.size(1),
          .k = a.size(1),
          .a_batch_stride = 0,
          .a_row_stride = a.stride(0),
          .a_col_stride = a.stride(1),
          .b_batch_stride = 0,
          .b_row_stride = b.stride(0),
          .b_col_stride = b.stride(1),
          .dtype = a.dtype()};
}

}  // namespace rooflab
