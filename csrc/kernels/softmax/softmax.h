// softmax: y[n, d] = exp(x[n, d] - max_d x[n, :]) / sum_d exp(x[n, d] - max_d x[n, :]), over rows of length D.
// A row with a NaN, a +inf or nothing but -inf is NaN throughout, and no other row is touched.
//
// Ladder, CUDA; on an H200 as a share of a device-to-device copy of the same bytes, bfloat16 / float32:
//                                                                             16384 x 4096   32768 x 640
//   v0 reference  one thread a row, three passes: maximum, sum, result
//   v1 online     one block a row; a running sum is rescaled when the maximum
//                 grows, so maximum and sum take one pass                        24 / 48 %      23 / 44 %
//   v2 one pass   the row waits in registers, read once with 16-byte loads;
//                 rows of up to 32768 elements, aligned                          98 / 97 %      97 / 98 %
// Ladder, CPU; two Zen 3 cores with AVX2, float32, as a share of memcpy on both:
//   v0 reference  one thread, three passes
//   v1 online     SIMD, all threads, two passes                                     38 %           38 %
//   v2 one pass   the row's exponentials wait in cache, results go around it        50 %           58 %
//
// FLOPs: 5 an element (maximum, subtract, exp, sum, divide). Compulsory bytes: each element read once and written once.
// Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

struct SoftmaxArgs {
  const void* x;  // (N, D), elements of a row adjacent
  void* y;        // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  DType dtype;
};

// v2 on the CPU keeps a row's exponentials, in the type that they are computed in, on the stack.
inline constexpr int64_t kSoftmaxCpuScratch = 128 << 10;  // bytes
inline bool softmax_cpu_v2_accepts(const SoftmaxArgs& args) {
  return args.d <= kSoftmaxCpuScratch / (args.dtype == DType::kFloat64 ? 8 : 4);
}

void softmax_cpu_v0_reference(const SoftmaxArgs&, Stream);
ROOFLAB_PER_ISA(softmax_cpu_v1_online, SoftmaxArgs)
ROOFLAB_PER_ISA(softmax_cpu_v2_one_pass, SoftmaxArgs)

[[gnu::weak]] void softmax_cuda_v0_reference(const SoftmaxArgs&, Stream);
[[gnu::weak]] void softmax_cuda_v1_online(const SoftmaxArgs&, Stream);
[[gnu::weak]] void softmax_cuda_v2_one_pass(const SoftmaxArgs&, Stream);
[[gnu::weak]] bool softmax_cuda_v2_accepts(const SoftmaxArgs&);

}  // namespace rooflab::kernels
