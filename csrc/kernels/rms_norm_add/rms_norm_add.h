// rms_norm_add: the end of one part of a transformer layer and the beginning of the next, over rows of length D:
//
//   h[n, :] = residual[n, :] + rms_norm(x[n, :]) gain[:]
//   y[n, :] = rms_norm(h[n, :]) next_gain[:]              where a next weight is given
//
// with gain = weight, or 1 + weight where weights are zero-centered. As separate ops these are three launches, and h
// and the first norm's result pass through memory twice more.
//
// Ladder, CPU:
//   v0_reference  one thread, in double
//   v1_simd       SIMD, all threads; the later passes find the row in L1
// Ladder, CUDA:
//   v0_reference  one thread per row, in double
//   v1_one_pass   both rows stay in registers, 16-byte accesses; aligned rows of up to 32768 elements
//
// FLOPs: 3 per element for each norm, 1 for each weight, 1 more where it is zero-centered, 1 for the sum. Compulsory
// bytes: x, residual and weights read once, h and y written once. Roof: memory bandwidth.
#pragma once

#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels {

struct RmsNormAddArgs {
  const void *x, *residual;  // (N, D), elements of a row adjacent
  const void* weight;        // (D), contiguous
  const void* next_weight;   // (D), contiguous; null: no y
  void *h, *y;               // (N, D), contiguous
  int64_t n, d;
  int64_t x_row_stride, residual_row_stride;
  double eps;
  bool zero_centered;
  DType dtype;
};

void rms_norm_add_cpu_v0_reference(const RmsNormAddArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_add_cpu_v1_simd, RmsNormAddArgs)
[[gnu::weak]] void rms_norm_add_cuda_v0_reference(const RmsNormAddArgs&, Queue&);
[[gnu::weak]] void rms_norm_add_cuda_v1_one_pass(const RmsNormAddArgs&, Queue&);

inline bool rms_norm_add_cuda_v1_accepts(const RmsNormAddArgs& args, const Target&) {
  return rows_fit_tile(args.dtype, args.d, args.x, args.x_row_stride, args.h) &&
         rows_fit_tile(args.dtype, args.d, args.residual, args.residual_row_stride, args.h) &&
         is_aligned(args.weight) && is_aligned(args.next_weight) && is_aligned(args.y);
}

}  // namespace rooflab::kernels
