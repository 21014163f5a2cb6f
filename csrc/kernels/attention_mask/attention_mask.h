// attention_mask: y[i, j] = whether query i may see key j under causality and a window (visible_keys in attention.h).
//
// Ladder: v0 reference, the only rung: one thread on the CPU, one thread per element on the GPU.
// FLOPs: none. Compulsory bytes: L_q L_kv written. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/queue.h"

namespace rooflab::kernels {

struct AttentionMaskArgs {
  bool* y;  // (L_q, L_kv), contiguous
  int64_t q_length, kv_length;
  bool is_causal;
  int64_t window;  // L_q + L_kv when there is no window
};

void attention_mask_cpu_v0_reference(const AttentionMaskArgs&, Queue&);
[[gnu::weak]] void attention_mask_cuda_v0_reference(const AttentionMaskArgs&, Queue&);

}  // namespace rooflab::kernels
