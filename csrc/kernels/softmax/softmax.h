// softmax: y[n, d] = exp(x[n, d] - max_d x[n, :]) / sum_d exp(x[n, d] - max_d x[n, :]), over rows of length D.
// A row that has a NaN or a +inf, or only -inf, is NaN throughout; other rows are not affected.
//
// Ladder, CPU:
//   v0_reference  one thread, three passes: maximum, sum, result
//   v1_online     SIMD, all threads, two passes
//   v2_one_pass   the row's exponentials stay in cache; results bypass the caches and are written while the next row is
//                 computed and the one after that is prefetched
// Ladder, CUDA:
//   v0_reference  one thread per row, three passes
//   v1_online     one block per row, which rescales its sum when the maximum grows, so maximum and sum take one pass
//   v2_one_pass   the row stays in registers, read once by 16-byte loads; aligned rows of up to 32768 elements
//
// [measured softmax] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  32768x640
//                    float32    float32
//                  % of copy  % of copy
//   v0_reference         3.2        3.3
//   v1_online             61         73
//   v2_one_pass           85        100
//   copy, GB/s            30         30
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                 16384x4096  16384x4096  32768x640  32768x640
//                   bfloat16     float32   bfloat16    float32
//                  % of copy   % of copy  % of copy  % of copy
//   v0_reference         3.1         6.1        4.6        7.6
//   v1_online             24          48         24         44
//   v2_one_pass           94          94         98         97
//   torch                 31          61         52         92
//   copy, GB/s          4076        4167       3603       3953
// [end measured]
//
// FLOPs: 5 per element (maximum, subtract, exp, sum, divide). Compulsory bytes: each element read once and written
// once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

struct SoftmaxArgs {
  const void* x;  // (N, D), elements of a row adjacent
  void* y;        // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride;  // in elements; 0 repeats a row
  DType dtype;
};

// v2 on the CPU keeps the exponentials of two rows on the stack, in the type that they are computed in.
inline constexpr int64_t kSoftmaxCpuScratch = 128 << 10;  // bytes per row
inline bool softmax_cpu_v2_accepts(const SoftmaxArgs& args, const Target&) {
  return args.d <= kSoftmaxCpuScratch / (args.dtype == DType::kFloat64 ? 8 : 4);
}

void softmax_cpu_v0_reference(const SoftmaxArgs&, Queue&);
ROOFLAB_PER_ISA(softmax_cpu_v1_online, SoftmaxArgs)
ROOFLAB_PER_ISA(softmax_cpu_v2_one_pass, SoftmaxArgs)

[[gnu::weak]] void softmax_cuda_v0_reference(const SoftmaxArgs&, Queue&);
[[gnu::weak]] void softmax_cuda_v1_online(const SoftmaxArgs&, Queue&);
[[gnu::weak]] void softmax_cuda_v2_one_pass(const SoftmaxArgs&, Queue&);

inline bool softmax_cuda_v2_accepts(const SoftmaxArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.y);
}

}  // namespace rooflab::kernels
