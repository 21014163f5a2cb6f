// rms_norm: y[n, d] = x[n, d] / sqrt(mean_d x[n, :]^2 + eps) * weight[d], over rows of length D.
//
// Ladder, CUDA; on an H200 as a share of a device-to-device copy of the same bytes, bfloat16 / float32:
//                                                                             16384 x 4096   32768 x 640
//   v0 reference      one thread a row, two passes: mean square, result
//   v1 block per row  one block a row, neighbouring threads on neighbouring
//                     elements; the second pass finds the row in L1              33 / 57 %      34 / 59 %
//   v2 one pass       the row waits in registers, read once with 16-byte
//                     loads; rows of up to 32768 elements, aligned               95 / 96 %      92 / 96 %
// Ladder, CPU; two Zen 3 cores with AVX2, float32, as a share of memcpy on both:
//   v0 reference      one thread, two passes
//   v1 simd           SIMD, all threads; the second pass finds the row in L1,
//                     results go around the caches                                   101 %          121 %
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
