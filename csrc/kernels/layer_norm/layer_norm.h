// layer_norm: y[n, d] = (x[n, d] - mean_d x[n, :]) / sqrt(var_d x[n, :] + eps) * weight[d] + bias[d], over rows of
// length D, with var the mean of the squared distances from the mean, computed as such (no difference of two large
// sums).
//
// Ladder, CUDA; on an H200 as a share of a device-to-device copy of the same bytes, bfloat16 / float32:
//                                                                             16384 x 4096   32768 x 640
//   v0 reference      one thread a row, three passes: mean, variance, result
//   v1 block per row  one block a row, neighbouring threads on neighbouring
//                     elements; later passes find the row in L1                  26 / 47 %      27 / 49 %
//   v2 one pass       the row waits in registers, read once with 16-byte
//                     loads; rows of up to 32768 elements, aligned               93 / 96 %      86 / 95 %
// Ladder, CPU; two Zen 3 cores with AVX2, float32, as a share of memcpy on both:
//   v0 reference      one thread, three passes
//   v1 simd           SIMD, all threads; later passes find the row in L1,
//                     results go around the caches                                    91 %          118 %
//
// FLOPs: 7 an element (sum; subtract, square, sum; two multiplications, add). Compulsory bytes: each element of x,
// weight and bias read once, each of y written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

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

void layer_norm_cpu_v0_reference(const LayerNormArgs&, Stream);
ROOFLAB_PER_ISA(layer_norm_cpu_v1_simd, LayerNormArgs)

[[gnu::weak]] void layer_norm_cuda_v0_reference(const LayerNormArgs&, Stream);
[[gnu::weak]] void layer_norm_cuda_v1_block_per_row(const LayerNormArgs&, Stream);
[[gnu::weak]] void layer_norm_cuda_v2_one_pass(const LayerNormArgs&, Stream);
[[gnu::weak]] bool layer_norm_cuda_v2_accepts(const LayerNormArgs&);

}  // namespace rooflab::kernels
