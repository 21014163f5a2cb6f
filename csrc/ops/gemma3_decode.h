// The decode step of a Gemma-3 layer as one call: nn/gemma3_decode.cpp makes the operands of a layer.
#pragma once

#include <optional>
#include <string_view>

#include "core/tensor.h"

namespace rooflab {

struct Gemma3DecodeOperands {
  Tensor x;  // (B, 1, D); all are contiguous and of its dtype, but for the caches' strides and the position
  Tensor qkv, o, gate_up, down;  // ((H + 2 H_kv) D_h, D), (D, H D_h), (2 I, D), (D, I)
  Tensor input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;  // (D)
  Tensor q_norm, k_norm;                                                                // (D_h)
  Tensor cos, sin;                                                                      // (1, D_h) or (B, D_h)
  Tensor position;                                                                      // (1), int64
  Tensor k_cache, v_cache;                                                              // (B, H_kv, T, D_h)
  double scale, eps;
  int64_t keys;  // that a text sees, the new one included: what the cost is reckoned with
};

// y (B, 1, D), and the new token's keys and values in the caches. Nothing where the rung is v0_composed: its steps are
// the caller's to take.
std::optional<Tensor> gemma3_decode(const Gemma3DecodeOperands& operands, std::string_view variant);

}  // namespace rooflab
