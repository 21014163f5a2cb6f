// cross_entropy: loss[n] = log(sum_v exp(x[n, v])) - x[n, target[n]] over logits (N, V), and the mean or the sum of the
// losses. The log-sum-exp of each row is kept for the gradient. The probabilities, which would be as large as the
// logits, are not. A row whose target is ignore_index has no loss and does not count in the mean. A target outside [0,
// V) raises an error on the CPU. A GPU cannot raise one: there the row's loss is NaN.
//
// Ladder, CPU:
//   v0_composed    amax, sub, exp, sum, log, gather and where as separate ops
//   v1_online      SIMD, all threads: the running sum is rescaled when the maximum grows, so each logit is read once
// Ladder, CUDA:
//   v0_composed    the same ops
//   v1_online      one block per row, maximum and sum in one pass; one block sums the losses
//   v2_vectorised  the same with 16-byte loads, four of them in flight; the unaligned ends of a row go element by
//                  element
//
// [measured cross_entropy] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                  4096x10000  4096x10000  4096x50257  4096x50257
//                    bfloat16     float32    bfloat16     float32
//                   % of copy   % of copy   % of copy   % of copy
//   v0_composed           6.3          14         4.3         9.4
//   v1_online              31          52          39          68
//   v2_vectorised          44          53          54          95
//   torch                  24          32          33          25
//   copy, GB/s           3617        3936        4158        4231
// [end measured]
//
// FLOPs: 4 per logit (maximum, subtract, exp, add), and 3 per row (log, two subtractions), or 4 where losses are
// summed. Compulsory bytes: logits and targets once; the loss, the log-sum-exp of each row and, for a mean, the count.
// Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

// The target class of each row.
struct Classes {
  const void* target;  // (N), contiguous, int64 or int32
  DType dtype;
  int64_t ignore_index, limit;  // limit: V
};

ROOFLAB_HOST_DEVICE int64_t class_of(const Classes& classes, int64_t row) {
  return classes.dtype == DType::kInt64 ? static_cast<const int64_t*>(classes.target)[row]
                                        : static_cast<const int32_t*>(classes.target)[row];
}

struct CrossEntropyArgs {
  const void* logits;  // (N, V), elements of a row adjacent
  Classes classes;
  void* loss;   // (N), or one number when it is reduced; in dtype, or in lse's type when wide_loss
  void* lse;    // (N), float; double for double
  void* count;  // how many rows are not ignored, one number of lse's type; null unless the reduction is a mean
  bool reduces, wide_loss;
  int64_t n, v;
  int64_t row_stride;  // in elements
  DType dtype;
};

// Throws ValueError when a target is neither a class nor ignore_index. CPU only.
void check_classes(const Classes& classes, int64_t rows);

ROOFLAB_PER_ISA(cross_entropy_cpu_v1_online, CrossEntropyArgs)
[[gnu::weak]] void cross_entropy_cuda_v1_online(const CrossEntropyArgs&, Queue&);
[[gnu::weak]] void cross_entropy_cuda_v2_vectorised(const CrossEntropyArgs&, Queue&);

// Elements of scratch, where the losses of all rows are kept until they are summed.
inline int64_t cross_entropy_scratch(const CrossEntropyArgs& args) {
  return args.reduces ? args.n * (args.dtype == DType::kFloat64 ? 8 : 4) : 0;
}
inline Footprint cross_entropy_cpu_footprint(const CrossEntropyArgs& args, const Target&) {
  return {.scratch_bytes = cross_entropy_scratch(args)};
}
inline Footprint cross_entropy_cuda_footprint(const CrossEntropyArgs& args, const Target&) {
  return {.launches = (args.n > 0) + args.reduces, .scratch_bytes = cross_entropy_scratch(args)};
}

}  // namespace rooflab::kernels
