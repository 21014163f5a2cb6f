// layer_norm_backward: the gradients of layer_norm's x, weight and bias. With c = x - mean_d x, n = c r,
// r = 1 / sqrt(mean_d c^2 + eps) and dn = dy weight, over rows of length D,
//   dx[n, d] = r (dn - mean_d dn - n mean_d(dn n))        dweight[d] = sum_n dy n        dbias[d] = sum_n dy.
// Nothing is saved besides x and weight: mean and r are recomputed from the row, which must be read anyway. Rows of
// huge or tiny numbers, whose squares leave float's range, are scaled first; v0_composed computes them in double.
//
// Ladder, CPU:
//   v0_composed       the formula, made of other ops
//   v1_simd           SIMD, all threads, one row at a time through L1; each block of rows has its own sums for dweight
//                     and dbias
// Ladder, CUDA:
//   v0_composed       as on the CPU
//   v1_block_per_row  blocks walk over rows element by element, each with its own sums for dweight and dbias in device
//                     memory
//   v2_one_pass       the row stays in registers, converted once, and so do a block's sums for dweight and dbias over
//                     all of its rows; the weight stays in shared memory; accesses of 16 bytes, or of 4 elements where
//                     a warp works on a row, which fits more closely; aligned rows of up to 8192 elements
// The sums of the blocks are added in a second launch, or stage. There are no atomics, so the result is deterministic.
//
// [measured layer_norm_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                     16384x4096  16384x4096  32768x640  32768x640
//                       bfloat16     float32   bfloat16    float32
//                      % of copy   % of copy  % of copy  % of copy
//   v0_composed              2.2         4.3        2.1        3.9
//   v1_block_per_row          19          31        8.8         14
//   v2_one_pass               78          92         72         86
//   copy, GB/s              4146        4230       3825       4063
// [end measured]
//
// FLOPs: 12 per element (two sums, x - mean; square, add; product with c, add; two products and two differences for dx,
// its product with r), 1 for the weight, 2 for dweight and 1 for dbias. Compulsory bytes: dy, x and weight read once,
// dx, dweight and dbias written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/column_sums.h"
#include "kernels/common/per_isa.h"
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

inline bool layer_norm_backward_accepts(const LayerNormBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

ROOFLAB_PER_ISA(layer_norm_backward_cpu_v1_simd, LayerNormBackwardArgs)
inline Footprint layer_norm_backward_cpu_v1_footprint(const LayerNormBackwardArgs& args, const Target&) {
  return {1, 0, args.sums() * cpu_blocks(args.n) * args.d * 4};
}

[[gnu::weak]] void layer_norm_backward_cuda_v1_block_per_row(const LayerNormBackwardArgs&, Queue&);
[[gnu::weak]] void layer_norm_backward_cuda_v2_one_pass(const LayerNormBackwardArgs&, Queue&);

inline ColumnSumPlan layer_norm_backward_plan(const LayerNormBackwardArgs& args, const Target& target) {
  return plan_column_sums(args.dtype, args.n, args.d, target);
}
inline bool layer_norm_backward_cuda_v2_accepts(const LayerNormBackwardArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.dx) &&
         rows_fit_tile(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) && is_aligned(args.weight) &&
         args.d <= kColumnSumElements * kColumnSumRowThreads;
}
inline Footprint layer_norm_backward_cuda_v1_footprint(const LayerNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(walking_blocks(args.n, target), args.d, args.sums());
}
inline Footprint layer_norm_backward_cuda_v2_footprint(const LayerNormBackwardArgs& args, const Target& target) {
  return column_sum_footprint(layer_norm_backward_plan(args, target).blocks, args.d, args.sums());
}

}  // namespace rooflab::kernels
