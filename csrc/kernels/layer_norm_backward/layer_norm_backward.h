// layer_norm_backward: the gradients of layer_norm's x, weight and bias. With c = x - mean_d x, n = c r,
// r = 1 / sqrt(mean_d c^2 + eps) and dn = dy weight, over rows of length D,
//   dx[n, d] = r (dn - mean_d dn - n mean_d(dn n))        dweight[d] = sum_n dy n        dbias[d] = sum_n dy.
// Nothing is saved besides x and weight: mean and r are recomputed from the row, which must be read anyway, and the
// mean is corrected as in layer_norm. Rows of huge or tiny numbers, whose squares leave float's range, are scaled
// first; v0_composed computes them in double. Where only products of dn and c leave it, v1 to v2a of a GPU give NaN or
// few digits.
//
// Sums over rows for dweight and dbias: each block has its own, and they are added in a second launch, or stage. There
// are no atomics, so the result is deterministic.
//
// FLOPs: 12 per element (two sums, x - mean; square, add; product with c, add; two products and two differences for dx,
// its product with r), 1 for the weight, 2 for dweight and 1 for dbias. Compulsory bytes: dy, x and weight read once,
// dx, dweight and dbias written once. Roof: memory bandwidth everywhere.
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

struct LayerNormBackwardArgs {
  const void* dy;      // (N, D), elements of a row adjacent
  const void* x;       // (N, D), elements of a row adjacent
  const void* weight;  // (D), contiguous; null: all ones
  void* dx;            // (N, D), contiguous
  void* dweight;       // (D), contiguous; null: not wanted
  void* dbias;         // (D), contiguous; null: not wanted
  int64_t n, d;
  int64_t dy_row_stride, x_row_stride;  // in elements; 0 repeats a row
  double eps;
  bool has_dweight, has_dbias;  // set also while the results do not exist yet
  DType dtype;

  int sums() const { return has_dweight + has_dbias; }
};

inline ColumnSumPlan layer_norm_backward_plan(const LayerNormBackwardArgs& args, const Target& target) {
  return plan_column_sums(args.dtype, args.n, args.d, target);
}

// v3: bytes that each part of a row leaves, and whether rows can be read in vectors.
inline constexpr int64_t kLayerNormBackwardPart = 40;
inline bool layer_norm_backward_has_vectors(const LayerNormBackwardArgs& args) {
  return rows_have_vectors(args.dtype, args.d, args.x, args.x_row_stride, args.dx) &&
         rows_have_vectors(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) && is_aligned(args.weight);
}

extern const Ladder<LayerNormBackwardArgs> layer_norm_backward_ladder;

}  // namespace rooflab::kernels
