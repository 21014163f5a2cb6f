// attention_mask: y[i, j] = whether query i may see key j under causality and a window (visible_keys in attention.h).
//
// FLOPs: none. Compulsory bytes: L_q L_kv written. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct AttentionMaskArgs {
  bool* y;  // (L_q, L_kv), contiguous
  int64_t q_length, kv_length;
  bool is_causal;
  int64_t window;  // L_q + L_kv when there is no window
};

extern const Ladder<AttentionMaskArgs> attention_mask_ladder;

}  // namespace rooflab::kernels
