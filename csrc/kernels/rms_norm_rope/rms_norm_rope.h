// rms_norm_rope: for models with normalised queries and keys, what happens to each head of each token: rms_norm over
// D_h with a gain, then rope. As separate ops these are two launches, and the result of the first goes through memory.
//
// Ladder, CPU:
//   v0_reference   one thread, in double
//   v1_simd        SIMD, all threads, one row at a time
// Ladder, CUDA:
//   v0_reference   one thread per row, in double
//   v1_warp_per_row  a warp holds a row, each lane 16 bytes of either half; aligned halves of up to 512 bytes
//
// FLOPs: 3 per element for the norm, 1 for the weight, 1 more where it is zero-centered, 3 for rope. Compulsory bytes:
// x, weight, cos and sin read once, y written once. Roof: memory bandwidth.
#pragma once

#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {

struct RmsNormRopeArgs {
  RopeArgs rope;       // its x is normalised first
  const void* weight;  // (D_h), contiguous
  double eps;
  bool zero_centered;  // the gain is 1 + weight
};

void rms_norm_rope_cpu_v0_reference(const RmsNormRopeArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_rope_cpu_v1_simd, RmsNormRopeArgs)
[[gnu::weak]] void rms_norm_rope_cuda_v0_reference(const RmsNormRopeArgs&, Queue&);
[[gnu::weak]] void rms_norm_rope_cuda_v1_warp_per_row(const RmsNormRopeArgs&, Queue&);
inline bool rms_norm_rope_cuda_v1_accepts(const RmsNormRopeArgs& args, const Target& target) {
  return args.rope.dtype != DType::kFloat64 && args.rope.head_size / 2 * size_of(args.rope.dtype) <= 512 &&
         is_aligned(args.weight) && rope_cuda_v1_accepts(args.rope, target);
}

}  // namespace rooflab::kernels
