// rms_norm_rope_append: for new tokens of a model with normalised queries and keys, everything between the projection
// and the attention: rms_norm_rope of the queries and of the keys, and kv_append of these keys and the values. As
// separate ops these are three launches, and the keys go through memory once more.
//
// FLOPs: those of rms_norm_rope for queries and keys. Compulsory bytes: q, k, v, weights, cos and sin read once, the
// queries and what the caches get written once; 8 for the position. Roof: memory bandwidth; for one token, the launch.
#pragma once

#include "kernels/kv_append/kv_append.h"
#include "kernels/rms_norm_rope/rms_norm_rope.h"

namespace rooflab::kernels {

struct RmsNormRopeAppendArgs {
  RmsNormRopeArgs q;
  KvAppendArgs append;   // its keys are normalised and rotated on the way
  const void* k_weight;  // (D_h), contiguous
};

extern const Ladder<RmsNormRopeAppendArgs> rms_norm_rope_append_ladder;

}  // namespace rooflab::kernels
