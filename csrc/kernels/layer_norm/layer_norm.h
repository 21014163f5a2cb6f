// layer_norm: y[n, d] = (x[n, d] - mean_d x[n, :]) / sqrt(var_d x[n, :] + eps) * weight[d] + bias[d], over rows of
// length D. var is the mean of the squared distances from the mean, computed as such (not as a difference of two large
// sums). Rows whose squares overflow float are normalised correctly: v0 computes in double, and the other rungs scale
// such rows down and compute again.
//
// Ladder, CPU:
//   v0_reference      one thread, three passes: mean, variance, result
//   v1_simd           SIMD, all threads; later passes find the row in L1, results bypass the caches
// Ladder, CUDA:
//   v0_reference      one thread per row, three passes
//   v1_block_per_row  one block per row, neighbouring threads take neighbouring elements; later passes hit in L1
//   v2_one_pass       the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements
//
// [measured layer_norm] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference          15         15
//   v1_simd              120        130
//   copy, GB/s            30         29
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                     16384x4096  16384x4096  32768x640  32768x640
//                       bfloat16     float32   bfloat16    float32
//                      % of copy   % of copy  % of copy  % of copy
//   v0_reference             3.8         5.8        4.3        7.9
//   v1_block_per_row          24          44         26         46
//   v2_one_pass               94          90         90         95
//   torch                     64          72         35         49
//   copy, GB/s              4044        4162       3652       3955
// [end measured]
//
// FLOPs: 5 per element (sum; subtract, square, sum; multiply), 1 for the weight, 1 for the bias. Compulsory bytes: each
// element of x, weight and bias read once, each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"

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

void layer_norm_cpu_v0_reference(const LayerNormArgs&, Queue&);
ROOFLAB_PER_ISA(layer_norm_cpu_v1_simd, LayerNormArgs)

[[gnu::weak]] void layer_norm_cuda_v0_reference(const LayerNormArgs&, Queue&);
[[gnu::weak]] void layer_norm_cuda_v1_block_per_row(const LayerNormArgs&, Queue&);
[[gnu::weak]] void layer_norm_cuda_v2_one_pass(const LayerNormArgs&, Queue&);

inline bool layer_norm_cuda_v2_accepts(const LayerNormArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y) && is_aligned(args.weight) &&
         is_aligned(args.bias);
}

}  // namespace rooflab::kernels
