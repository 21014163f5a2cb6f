// rms_norm_backward: the gradients of rms_norm's x and weight. With gain g = weight (1 + weight when it is
// zero-centered; 1 without one), r = 1 / sqrt(mean_d x^2 + eps), n = x r and dn = dy g, over rows of length D,
//   dx[n, d] = r (dn - n mean_d(dn n))        dweight[d] = sum_n dy n.
// Nothing is saved besides x and weight: r is recomputed from the row, which must be read anyway. Rows of huge or tiny
// numbers, whose squares leave float's range, are scaled first; v0_composed computes them in double. Where only
// products of dn and x leave it, v1 to v2a of a GPU give NaN or few digits.
//
// Sums over rows for dweight: each block has its own, and they are added in a second launch, or stage. There are no
// atomics, so the result is deterministic.
//
// FLOPs: 8 per element (square, add; product with n, add; two products and a difference for dx, its product with r), 1
// for the gain, 1 more where it is zero-centered, and 2 for dweight. Compulsory bytes: dy, x and weight read once, dx
// and dweight written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/column_sums.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/row_unit.h"

namespace rooflab::kernels {

struct RmsNormBackwardArgs {
  const void* dy;      // (N, D), elements of a row adjacent
  const void* x;       // (N, D), elements of a row adjacent
  const void* weight;  // (D), contiguous; null: all ones
  void* dx;            // (N, D), contiguous
  void* dweight;       // (D), contiguous; null: not wanted
  int64_t n, d;
  int64_t dy_row_stride, x_row_stride;  // in elements; 0 repeats a row
  double eps;
  bool zero_centered;  // the gain is 1 + weight
  bool has_dweight;    // set also while dweight does not exist yet
  DType dtype;
};

inline ColumnSumPlan rms_norm_backward_plan(const RmsNormBackwardArgs& args, const Target& target) {
  return plan_column_sums(args.dtype, args.n, args.d, target);
}

// v3: bytes that each part of a row leaves, and whether rows can be read in vectors.
inline constexpr int64_t kRmsNormBackwardPart = 16;
inline bool rms_norm_backward_has_vectors(const RmsNormBackwardArgs& args) {
  return rows_have_vectors(args.dtype, args.d, args.x, args.x_row_stride, args.dx) &&
         rows_have_vectors(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) && is_aligned(args.weight);
}

extern const Ladder<RmsNormBackwardArgs> rms_norm_backward_ladder;

}  // namespace rooflab::kernels
