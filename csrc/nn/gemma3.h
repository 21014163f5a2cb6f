// The decoder layer of Gemma 3 (Gemma Team, arXiv:2503.19786), as Hugging Face's transformers defines it:
//
//   h = x + norm(attention(norm(x)))
//   y = h + norm(mlp(norm(h)))
//
// Every norm is an rms_norm whose gain is 1 + weight. Queries and keys are normalised over the head size and turned by
// rope; the attention is causal and grouped, and looks back over the whole text or over a sliding window. The MLP is
// down(geglu(gate(x), up(x))). No projection has a bias.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace rooflab::nn {

// The keys and values of one layer for B texts of the same length, and how many tokens they have seen. A layer with a
// sliding window needs room for no more than its window: the cache is a ring (kernels/kv_append).
struct KvCache {
  Tensor k, v;       // (B, H_kv, T, D_h)
  Tensor position;   // (1), int64, on the device: the tokens seen, which is the next token's position
  int64_t seen = 0;  // the same number on the host
  // (1), int64, on the device: the tokens seen once the next one is in. Decoding with it asks the host for nothing, so
  // a graph of the step can be replayed.
  std::optional<Tensor> held;
};

struct Gemma3Attention {
  Tensor q_proj, k_proj, v_proj;  // (H D_h, D), (H_kv D_h, D), (H_kv D_h, D)
  Tensor o_proj;                  // (D, H D_h)
  Tensor q_norm, k_norm;          // (D_h)
  double scale, eps;
  std::optional<int64_t> window;  // only keys at a smaller distance are seen; none: all keys
  bool fused = true;              // see Gemma3Layer
};

struct Gemma3Mlp {
  Tensor gate_proj, up_proj;  // (I, D)
  Tensor down_proj;           // (D, I)
  bool fused = true;          // see Gemma3Layer
};

// If fused, norms run in one kernel with what follows (rope, or a residual and a norm), and weights that are adjacent
// in memory become one product. Otherwise each step is a kernel in a range of its own.
struct Gemma3Layer {
  Gemma3Attention attention;
  Gemma3Mlp mlp;
  Tensor input_layernorm, post_attention_layernorm, pre_feedforward_layernorm, post_feedforward_layernorm;  // (D)
};

// x is (B, L, D), and so are the results; cos and sin of the tokens' positions are (L, D_h) or (B, L, D_h). With a
// cache the L tokens come after those it has seen, and their keys and values are written into it; the caller then moves
// `position` and `seen` on by L, once for all layers of a model.
Tensor forward(const Gemma3Attention& attention, const Tensor& x, const Tensor& cos, const Tensor& sin,
               const KvCache* cache);
Tensor forward(const Gemma3Mlp& mlp, const Tensor& x);
Tensor forward(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache);

// A layer, and what it needs to decode with a cache.
struct Gemma3DecodeStep {
  Gemma3Layer layer;
  Tensor cos, sin;
  KvCache cache;
};

// Layers one after the other, from x (B, L, D) on: forward() of each, with its cache. For one new token of each text,
// fused layers that are alike are one call of gemma3_decode.
Tensor forward(std::span<const Gemma3DecodeStep> steps, Tensor x);

// The layers' forward for one new token of each text, x (B, 1, D), which sees all that the caches hold. It is an op
// with a ladder of its own. forward() calls it where the layers are fused and no gradient is wanted.
Tensor gemma3_decode(std::span<const Gemma3DecodeStep> steps, Tensor x, std::string_view variant = "");

}  // namespace rooflab::nn
