// rms_norm: y[n, d] = x[n, d] / sqrt(mean_d x[n, :]^2 + eps) * weight[d], over rows of length D.
//
// Ladder, CUDA:
//   v0 reference      one thread a row, two passes over it: mean square, result
//   v1 block per row  one block a row, neighbouring threads on neighbouring elements; the second pass finds the row in
//   L1 v2 one pass       the row waits in registers, read once with 16-byte loads; rows up to 64 KiB
// Ladder, CPU:
//   v0 reference      one thread, two passes
//   v1 simd           all cores, SIMD; the second pass finds the row in L1, the result bypasses the caches
//
// FLOPs: 4 an element (square, add, two multiplications). Compulsory bytes: each element of x and weight read once,
// each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

struct RmsNormArgs {
  const void* x;       // (N, D), elements of a row adjacent
  const void* weight;  // (D), contiguous; null: all ones
  void* y;             // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  double eps;
  DType dtype;
};

void rms_norm_cpu_v0_reference(const RmsNormArgs&, Stream);
ROOFLAB_PER_ISA(rms_norm_cpu_v1_simd, RmsNormArgs)

[[gnu::weak]] void rms_norm_cuda_v0_reference(const RmsNormArgs&, Stream);
[[gnu::weak]] void rms_norm_cuda_v1_block_per_row(const RmsNormArgs&, Stream);
[[gnu::weak]] void rms_norm_cuda_v2_one_pass(const RmsNormArgs&, Stream);
[[gnu::weak]] bool rms_norm_cuda_v2_accepts(const RmsNormArgs&);

}  // namespace rooflab::kernels
