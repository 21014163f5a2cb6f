// rms_norm_add: the end of one part of a transformer layer and the beginning of the next, over rows of length D:
//
//   h[n, :] = residual[n, :] + rms_norm(x[n, :]) gain[:]
//   y[n, :] = rms_norm(h[n, :]) next_gain[:]              where a next weight is given
//
// with gain = weight, or 1 + weight where weights are zero-centered. As separate ops these are three launches, and h
// and the first norm's result pass through memory twice more.
//
// FLOPs: 3 per element for each norm, 1 for each weight, 1 more where it is zero-centered, 1 for the sum. Compulsory
// bytes: x, residual and weights read once, h and y written once. Roof: memory bandwidth.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels {

struct RmsNormAddArgs {
  const void *x, *residual;  // (N, D), elements of a row adjacent
  const void* weight;        // (D), contiguous
  const void* next_weight;   // (D), contiguous; null: no y
  void *h, *y;               // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride, residual_row_stride;
  double eps;
  bool zero_centered;
  DType dtype;
};

extern const Ladder<RmsNormAddArgs> rms_norm_add_ladder;

}  // namespace rooflab::kernels
