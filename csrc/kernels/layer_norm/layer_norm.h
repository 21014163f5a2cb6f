// layer_norm: y[n, d] = (x[n, d] - mean_d x[n, :]) / sqrt(var_d x[n, :] + eps) * weight[d] + bias[d], over rows of
// length D. var is the mean of the squared distances from the mean, computed as such (not as a difference of two large
// sums). v0 computes in double. For the other rungs a mean in the row's precision is too coarse where numbers are large
// and alike, so they correct it by the mean of the distances from it; rows whose squares overflow float they scale down
// and compute again.
//
// FLOPs: 5 per element (sum; subtract, square, sum; multiply), 1 for the weight, 1 for the bias. Compulsory bytes: each
// element of x, weight and bias read once, each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct LayerNormArgs {
  const void* x;       // (N, D), elements of a row adjacent
  const void* weight;  // (D), contiguous; null: all ones
  const void* bias;    // (D), contiguous; null: all zeros
  void* y;             // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  double eps;
  DType dtype;
};

extern const Ladder<LayerNormArgs> layer_norm_ladder;

}  // namespace rooflab::kernels
