// The decode step of Gemma-3 layers as one call. nn/gemma3_decode.cpp gets the operands from the layers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace rooflab {

inline constexpr size_t kGemma3DecodeLayers = 20;  // the most of one call

struct Gemma3DecodeLayerOperands {
  Tensor qkv, o, gate_up, down;  // ((H + 2 H_kv) D_h, D), (D, H D_h), (2 I, D), (D, I)
  Tensor input_norm, post_attention_norm, pre_feedforward_norm, post_feedforward_norm;  // (D)
  Tensor q_norm, k_norm;                                                                // (D_h)
  Tensor cos, sin;                                                                      // (1, D_h) or (B, D_h)
  Tensor k_cache, v_cache;                                                              // (B, H_kv, T, D_h)
  int64_t keys;  // keys that a text sees, including the new one; only the cost depends on it
};

// All tensors are contiguous and of x's dtype, except the caches' strides and the position. All layers have the same
// sizes, except T.
struct Gemma3DecodeOperands {
  Tensor x;         // (B, 1, D)
  Tensor position;  // (1), int64
  double scale, eps;
  std::vector<Gemma3DecodeLayerOperands> layers;  // at least one
};

// Returns y (B, 1, D) and writes the new token's keys and values into the caches. If the rung is v0_composed it does
// nothing and returns none: the caller then runs the steps.
std::optional<Tensor> gemma3_decode(const Gemma3DecodeOperands& operands, std::string_view variant);

}  // namespace rooflab
