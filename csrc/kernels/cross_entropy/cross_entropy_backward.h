// cross_entropy_backward: dx[n, v] = (exp(x[n, v] - lse[n]) - [v = target[n]]) g[n], the gradient of the logits (N, V)
// from the log-sum-exp of each row. g[n] is the gradient of the row's loss: dloss, divided by the count for a mean. The
// probabilities are recomputed. A row whose target is ignore_index gets zeros; on a GPU, a row whose target is not a
// class gets NaN.
//
// Ladder, CPU:
//   v0_composed    sub, exp, mul and scatter_add as separate ops
//   v1_recompute   SIMD, all threads, one pass
// Ladder, CUDA:
//   v0_composed    the same ops
//   v1_recompute   blocks of threads along the rows, one element at a time
//   v2_vectorised  16 bytes at a time, four loads in flight; rows of x and dx must have the same offset from 16 bytes
//
// [measured cross_entropy_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                  4096x10000  4096x10000  4096x50257  4096x50257
//                    bfloat16     float32    bfloat16     float32
//                   % of copy   % of copy   % of copy   % of copy
//   v0_composed           8.8          23         5.2          12
//   v1_recompute           41          60          39          62
//   v2_vectorised          65          93          68          92
//   torch                  36          45          37          36
//   copy, GB/s           3934        4124        4233        4270
// [end measured]
//
// FLOPs: 3 per logit (subtract, exp, multiply) and 2 per row (one hot, count). Compulsory bytes: logits, targets, lse
// and dloss read once, the gradient written once. Roof: memory bandwidth.
#pragma once

#include "kernels/common/alignment.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {

struct CrossEntropyBackwardArgs {
  const void* dloss;     // (N), or one number; in dtype, or in lse's type when wide_loss
  int64_t dloss_stride;  // 1, or 0
  const void* logits;    // (N, V), elements of a row adjacent
  Classes classes;
  const void* lse;    // (N), float; double for double
  const void* count;  // divides dloss; one number of lse's type, or null
  void* dlogits;      // (N, V), contiguous; may be the memory of logits, if those are contiguous
  bool wide_loss;
  int64_t n, v;
  int64_t row_stride;  // of logits, in elements
  DType dtype;
};

ROOFLAB_PER_ISA(cross_entropy_backward_cpu_v1_recompute, CrossEntropyBackwardArgs)
[[gnu::weak]] void cross_entropy_backward_cuda_v1_recompute(const CrossEntropyBackwardArgs&, Queue&);
[[gnu::weak]] void cross_entropy_backward_cuda_v2_vectorised(const CrossEntropyBackwardArgs&, Queue&);

inline bool cross_entropy_backward_cuda_v2_accepts(const CrossEntropyBackwardArgs& args, const Target&) {
  const int64_t size = size_of(args.dtype);
  const int64_t apart = reinterpret_cast<intptr_t>(args.logits) - reinterpret_cast<intptr_t>(args.dlogits);
  return apart % 16 == 0 && (args.row_stride - args.v) * size % 16 == 0;
}

}  // namespace rooflab::kernels
