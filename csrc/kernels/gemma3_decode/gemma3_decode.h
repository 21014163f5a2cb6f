// gemma3_decode: one new token per text through a decoder layer of Gemma 3 (nn/gemma3.h), with its KV cache:
//
//   q, k, v = qkv norm(x);  q, k = rope(norm(q)), rope(norm(k));  k, v go to place `position` mod T of the cache
//   h = x + norm(o attention(q, cache));  gate, up = gate_up norm(h);  y = h + norm(down(geglu(gate, up)))
//
// MACs: B times the weights of the five products, and 2 B H D_h per key. FLOPs: 2 per MAC, and those of the norms,
// rope, softmax, GeGLU and sums. Compulsory bytes: weights, x and the cache's keys and values read once; y and the new
// token's keys and values written once. Roof: memory bandwidth; with few texts and short caches, the waits between the
// steps.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/attention/attention.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct Gemma3DecodeArgs {
  const void* x;                         // (B, D), contiguous, as are y and all weights
  void* y;                               // (B, D)
  const void *qkv, *o, *gate_up, *down;  // ((H + 2 H_kv) D_h, D), (D, H D_h), (2 I, D), (D, I); rows of gate first
  const void *input_norm, *post_attention_norm, *pre_feedforward_norm, *post_feedforward_norm;  // (D): gain - 1
  const void *q_norm, *k_norm;                                                                  // (D_h): gain - 1
  const void *cos, *sin;    // (D_h) of each text, `angle_stride` elements apart
  void *k_cache, *v_cache;  // (B, H_kv, T, D_h)
  const int64_t* position;  // of the new token
  int64_t batch, model, intermediate, heads, kv_heads, head_size, capacity;  // B, D, I, H, H_kv, D_h, T
  int64_t angle_stride;
  AttentionStrides k_strides, v_strides;
  double scale, eps;
  DType dtype;
};

extern const Ladder<Gemma3DecodeArgs> gemma3_decode_ladder;

}  // namespace rooflab::kernels
