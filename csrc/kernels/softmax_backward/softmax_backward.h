// softmax_backward: the gradient of x from y = softmax(x), over rows of length D:
//   dx[n, d] = y[n, d] (dy[n, d] - sum_d dy[n, :] y[n, :]).
// y is what softmax returned; x is not needed.
//
// Ladder, CPU:
//   v0_composed       the formula, made of other ops
//   v1_simd           SIMD, all threads; the second pass finds the row in L1, results bypass the caches
// Ladder, CUDA:
//   v0_composed       as on the CPU
//   v1_block_per_row  one block per row, neighbouring threads take neighbouring elements; the second pass hits in L1
//   v2_one_pass       the rows stay in registers, read once by 16-byte loads; aligned rows of up to 16384 elements
//
// [measured softmax_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                     16384x4096  16384x4096  32768x640  32768x640
//                       bfloat16     float32   bfloat16    float32
//                      % of copy   % of copy  % of copy  % of copy
//   v0_composed               32          33         29         31
//   v1_block_per_row          43          71         44         73
//   v2_one_pass               93          94         97         97
//   torch                     51          50         41         51
//   copy, GB/s              4152        4226       3832       4036
// [end measured]
//
// FLOPs: 4 per element (product, add, subtract, product). Compulsory bytes: dy and y read once, dx written once. Roof:
// memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/alignment.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

struct SoftmaxBackwardArgs {
  const void* dy;  // (N, D), elements of a row adjacent
  const void* y;   // (N, D), elements of a row adjacent
  void* dx;        // (N, D), contiguous
  int64_t n, d;
  int64_t dy_row_stride, y_row_stride;  // in elements; 0 repeats a row
  DType dtype;
};

inline bool softmax_backward_accepts(const SoftmaxBackwardArgs& args, const Target&) {
  return args.dtype != DType::kFloat64;
}

ROOFLAB_PER_ISA(softmax_backward_cpu_v1_simd, SoftmaxBackwardArgs)

[[gnu::weak]] void softmax_backward_cuda_v1_block_per_row(const SoftmaxBackwardArgs&, Queue&);
[[gnu::weak]] void softmax_backward_cuda_v2_one_pass(const SoftmaxBackwardArgs&, Queue&);

// A thread holds 32 elements of y and of dy: with more threads they would not fit in the registers.
inline constexpr int kSoftmaxBackwardThreads = 512;
inline bool softmax_backward_cuda_v2_accepts(const SoftmaxBackwardArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.y, args.y_row_stride, args.dx) &&
         rows_fit_tile(args.dtype, args.d, args.dy, args.dy_row_stride, args.dx) &&
         args.d <= 32 * kSoftmaxBackwardThreads;
}

}  // namespace rooflab::kernels
