// rms_norm_backward: the gradients of rms_norm's x and weight. With gain g = weight (1 + weight when it is
// zero-centered; 1 without one), r = 1 / sqrt(mean_d x^2 + eps), n = x r and dn = dy g, over rows of length D,
//   dx[n, d] = r (dn - n mean_d(dn n))        dweight[d] = sum_n dy n.
// Nothing is saved besides x and weight: r is recomputed from the row, which must be read anyway. Rows of huge or tiny
// numbers, whose squares leave float's range, are scaled first; v0_composed computes them in double.
//
// Ladder, CPU:
//   v0_composed       the formula, made of other ops
//   v1_simd           SIMD, all threads, one row at a time through L1; each block of rows has its own sums for dweight
// Ladder, CUDA:
//   v0_composed       as on the CPU
//   v1_block_per_row  blocks walk over rows element by element, each with its own sums for dweight in device memory
//   v2_one_pass       the row stays in registers, converted once, and so do a block's sums for dweight over all of its
//                     rows; the gains stay in shared memory; accesses of 16 bytes, or of 4 elements where a warp works
//                     on a row, which fits more closely; aligned rows of up to 8192 elements
// The sums of the blocks are added in a second launch, or stage. There are no atomics, so the result is deterministic.
//
// [measured rms_norm_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                     16384x4096  16384x4096  32768x640  32768x640
//                       bfloat16     float32   bfloat16    float32
//                      % of copy   % of copy  % of copy  % of copy
//   v0_composed              2.8         5.4        2.8        5.1
//   v1_block_per_row          26          46         12         20
//   v2_one_pass               87          93         82         87
//   copy, GB/s              4149        4232       3773       4068
// [end measured]
//
// FLOPs: 8 per element (square, add; product with n, add; two products and a difference for dx, its product with r), 1
// for the gain, 1 more where it is zero-centered, and 2 for dweight. Compulsory bytes: dy, x and weight read once, dx
// and dweight written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/column_sums.h"
#include "kernels/common/per_isa.h"
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

inline bool rms_norm_backward_accepts(const RmsNormBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

ROOFLAB_PER_ISA(rms_norm_backward_cpu_v1_simd, RmsNormBackwardArgs)
inline Footprint rms_norm_backward_cpu_v1_footprint(const RmsNormBackwardArgs& args, const Target&) {
  return {1, 0, args.has_dweight ? cpu_blocks(args.n) * args.d * 4 : 0};
}

[[gnu::weak]] void rms_norm_backward_cuda_v1_block_per_row(const RmsNormBackwardArgs&, Queue&);
[[gnu::weak]] void rms_norm_backward_cuda_v2_one_pass(const RmsNormBackwardArgs&, Queue&);

inline ColumnSumPlan rms_norm_backward_plan(const RmsNormBackwardArgs& args, const Target& target) {
  return plan_column_sums(args.dtype, args.n, args.d, target);
}
inline bool rms_norm_backward_cuda_v2_accepts(const RmsNormBackwardArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.dx) &&
         rows_fit_tile(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) && is_aligned(args.weight) &&
         args.d <= kColumnSumElements * kColumnSumRowThreads;
}
inline Footprint rms_norm_backward_cuda_v1_footprint(const RmsNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(walking_blocks(args.n, target), args.d, args.has_dweight);
}
inline Footprint rms_norm_backward_cuda_v2_footprint(const RmsNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(rms_norm_backward_plan(args, target).blocks, args.d, args.has_dweight);
}

}  // namespace rooflab::kernels
