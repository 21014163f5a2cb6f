// gemma3_decode: one new token per text through decoder layers of Gemma 3 (nn/gemma3.h), one after the other, each with
// its KV cache:
//
//   q, k, v = qkv norm(x);  q, k = rope(norm(q)), rope(norm(k));  k, v go to place `position` mod T of the cache
//   h = x + norm(o attention(q, cache));  gate, up = gate_up norm(h);  y = h + norm(down(geglu(gate, up)))
//
// y is the next layer's x.
//
// MACs per layer: B times the weights of the five products, and 2 B H D_h per key. FLOPs: 2 per MAC, and those of the
// norms, rope, softmax, GeGLU and sums. Compulsory bytes: weights, the first x and the caches' keys and values read
// once; the last y and the new token's keys and values written once. Roof: memory bandwidth; with few texts and short
// caches, the waits between the steps.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/out_of_range.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/attention/attention.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

inline constexpr int kDecodeMaxLayers = 20;  // of one call: their pointers are parameters of a kernel, which has 4 KiB

// What a layer has of its own. All weights are contiguous.
struct Gemma3DecodeLayer {
  const void *qkv, *o, *gate_up, *down;  // ((H + 2 H_kv) D_h, D), (D, H D_h), (2 I, D), (D, I); rows of gate first
  const void *input_norm, *post_attention_norm, *pre_feedforward_norm, *post_feedforward_norm;  // (D): gain - 1
  const void *q_norm, *k_norm;                                                                  // (D_h): gain - 1
  const void *cos, *sin;    // (D_h) of each text, `angle_stride` elements apart
  void *k_cache, *v_cache;  // (B, H_kv, T, D_h)
  AttentionStrides k_strides, v_strides;
  int64_t capacity, angle_stride;  // T, D_h or 0
};

struct Gemma3DecodeArgs {
  const void* x;                                                   // (B, D), contiguous, as is y
  void* y;                                                         // (B, D)
  const int64_t* position;                                         // of the new token
  int64_t batch, model, intermediate, heads, kv_heads, head_size;  // B, D, I, H, H_kv, D_h
  double scale, eps;
  DType dtype;
  int count;           // layers
  OutOfRange* report;  // where a GPU reports a position below 0
  Gemma3DecodeLayer layers[kDecodeMaxLayers];
};

extern const Ladder<Gemma3DecodeArgs> gemma3_decode_ladder;

}  // namespace rooflab::kernels
