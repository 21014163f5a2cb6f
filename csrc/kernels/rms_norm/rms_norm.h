// rms_norm: y[n, d] = x[n, d] / sqrt(mean_d x[n, :]^2 + eps) * weight[d], over rows of length D. A zero-centered weight
// is stored as its distance from 1: the gain is 1 + weight[d].
//
// Ladder, CPU:
//   v0_reference      one thread, two passes: mean square, result
//   v1_simd           SIMD, all threads; the second pass finds the row in L1, results bypass the caches
// Ladder, CUDA:
//   v0_reference      one thread per row, two passes
//   v1_block_per_row  one block per row, neighbouring threads take neighbouring elements; the second pass hits in L1
//   v2_one_pass       the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements
//
// [measured rms_norm] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference          28         29
//   v1_simd              132        142
//   copy, GB/s            31         30
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                     16384x4096  16384x4096  32768x640  32768x640
//                       bfloat16     float32   bfloat16    float32
//                      % of copy   % of copy  % of copy  % of copy
//   v0_reference             4.7         8.9        5.5        9.7
//   v1_block_per_row          31          54         33         57
//   v2_one_pass               93          94         94         96
//   torch                     82          72         61         72
//   copy, GB/s              4072        4178       3616       3933
// [end measured]
//
// FLOPs: 3 per element (square, add, multiply), 1 for the weight and 1 more where it is zero-centered. Compulsory
// bytes: each element of x and weight read once, each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"
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

void rms_norm_cpu_v0_reference(const RmsNormArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_cpu_v1_simd, RmsNormArgs)

[[gnu::weak]] void rms_norm_cuda_v0_reference(const RmsNormArgs&, Queue&);
[[gnu::weak]] void rms_norm_cuda_v1_block_per_row(const RmsNormArgs&, Queue&);
[[gnu::weak]] void rms_norm_cuda_v2_one_pass(const RmsNormArgs&, Queue&);

inline bool rms_norm_cuda_v2_accepts(const RmsNormArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y) && is_aligned(args.weight);
}

}  // namespace rooflab::kernels
