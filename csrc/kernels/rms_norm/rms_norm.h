// rms_norm: y[n, d] = x[n, d] / sqrt(mean_d x[n, :]^2 + eps) * weight[d], over rows of length D. A zero-centered weight
// is stored as its distance from 1: the gain is 1 + weight[d].
//
// FLOPs: 3 per element (square, add, multiply), 1 for the weight and 1 more where it is zero-centered. Compulsory
// bytes: each element of x and weight read once, each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/common/row_unit.h"

namespace rooflab::kernels {

struct RmsNormArgs {
  const void* x;       // (N, D), elements of a row adjacent
  const void* weight;  // (D), contiguous; null: all ones
  void* y;             // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  double eps;
  bool zero_centered;  // the gain is 1 + weight
  DType dtype;
};

extern const Ladder<RmsNormArgs> rms_norm_ladder;

}  // namespace rooflab::kernels
