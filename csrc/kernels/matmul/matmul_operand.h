// How the operands of matmul lie in memory, as the CUDA rungs see them.
#pragma once

#include <cstdint>

#include "kernels/common/alignment.h"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

// A or B as rows of contiguous elements, `leading` elements apart. The rows run along K (k_major) or along M or N.
struct MatmulOperand {
  const void* data;
  int64_t rows, row_length;
  int64_t leading, batch_stride;
  bool k_major;
  bool has_rows;  // false: neither stride is 1

  bool aligned_to_16_bytes(DType dtype) const {
    const int64_t bytes = size_of(dtype);
    return is_aligned(data) && leading * bytes % 16 == 0 && batch_stride * bytes % 16 == 0;
  }
};

inline MatmulOperand matmul_operand(const void* data, int64_t mn, int64_t k, int64_t mn_stride, int64_t k_stride,
                                    int64_t batch_stride) {
  // Along an extent of one the stride has no meaning, so it may count as 1.
  const bool k_unit = k <= 1 || k_stride == 1, mn_unit = mn <= 1 || mn_stride == 1;
  const bool k_major = k_unit && !(k <= 1 && mn_unit);
  const int64_t rows = k_major ? mn : k, row_length = k_major ? k : mn;
  const int64_t leading = rows <= 1 ? (row_length + 15) / 16 * 16 : k_major ? mn_stride : k_stride;
  return {data, rows, row_length, leading, batch_stride, k_major, k_unit || mn_unit};
}

inline MatmulOperand matmul_a(const MatmulArgs& args) {
  return matmul_operand(args.a, args.m, args.k, args.a_row_stride, args.a_col_stride,
                        args.batch <= 1 ? 0 : args.a_batch_stride);
}

inline MatmulOperand matmul_b(const MatmulArgs& args) {
  return matmul_operand(args.b, args.n, args.k, args.b_col_stride, args.b_row_stride,
                        args.batch <= 1 ? 0 : args.b_batch_stride);
}

inline MatmulOperand matmul_c(const MatmulArgs& args) {
  return {args.c, args.m, args.n, args.n, args.batch <= 1 ? 0 : args.m * args.n, false, true};
}

// For the rung that splits floats into three bfloat16: the rows of the parts are aligned to 16 bytes.
inline int64_t matmul_split_leading(const MatmulOperand& operand) { return (operand.row_length + 7) / 8 * 8; }
inline int64_t matmul_split_elements(const MatmulOperand& operand, int64_t batch) {
  return 3 * matmul_split_leading(operand) * operand.rows * (operand.batch_stride == 0 ? 1 : batch);
}
inline int64_t matmul_split_elements(const MatmulArgs& args) {
  return matmul_split_elements(matmul_a(args), args.batch) + matmul_split_elements(matmul_b(args), args.batch);
}

}  // namespace rooflab::kernels
