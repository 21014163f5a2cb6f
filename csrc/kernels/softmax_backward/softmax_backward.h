// softmax_backward, log_softmax_backward: the gradient of x over rows of length D, from
//   y = softmax(x):     dx[n, d] = y[n, d] (dy[n, d] - sum_d dy[n, :] y[n, :])
//   y = log_softmax(x): dx[n, d] = dy[n, d] - exp(y[n, d]) sum_d dy[n, :]
// y is what the forward pass returned; x is not needed.
//
// FLOPs: 4 per element (product, add, subtract, product; or add, exp, product, subtract). Compulsory bytes: dy and y
// read once, dx written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct SoftmaxBackwardArgs {
  const void* dy;  // (N, D), elements of a row adjacent
  const void* y;   // (N, D), elements of a row adjacent
  void* dx;        // (N, D), contiguous
  int64_t n, d;
  int64_t dy_row_stride, y_row_stride;  // in elements; 0 repeats a row
  DType dtype;
  bool logarithm;  // y is log_softmax(x)
  // Where rows are columns, as in SoftmaxArgs: `inner` of them side by side, or 0; dx lies as softmax's y does.
  int64_t inner = 0, dy_outer_stride = 0, dy_step = 0, y_outer_stride = 0, y_step = 0;
};
inline constexpr const char* kSoftmaxBackwardColumns = "v4_columns";

inline constexpr int64_t kSoftmaxBackwardCpuShort = 16;  // elements of rows that lie side by side, one in each lane

// A thread holds 32 elements of y and of dy: with more threads they would not fit in the registers.
inline constexpr int kSoftmaxBackwardThreads = 512;

extern const Ladder<SoftmaxBackwardArgs> softmax_backward_ladder;

}  // namespace rooflab::kernels
