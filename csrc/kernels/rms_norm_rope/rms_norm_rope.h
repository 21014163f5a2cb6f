// rms_norm_rope: for models with normalised queries and keys, what happens to each head of each token: rms_norm over
// D_h with a gain, then rope. As separate ops these are two launches, and the result of the first goes through memory.
//
// FLOPs: 3 per element for the norm, 1 for the weight, 1 more where it is zero-centered, 3 for rope. Compulsory bytes:
// x, weight, cos and sin read once, y written once. Roof: memory bandwidth.
#pragma once

#include "kernels/common/ladder_declaration.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {

struct RmsNormRopeArgs {
  RopeArgs rope;       // its x is normalised first
  const void* weight;  // (D_h), contiguous
  double eps;
  bool zero_centered;  // the gain is 1 + weight
};

bool rms_norm_rope_cuda_v1_accepts(const RmsNormRopeArgs&, const Target&);

extern const Ladder<RmsNormRopeArgs> rms_norm_rope_ladder;

}  // namespace rooflab::kernels
