// gemma3_decode: one new token per text through a decoder layer of Gemma 3 (nn/gemma3.h), with its KV cache:
//
//   q, k, v = qkv norm(x);  q, k = rope(norm(q)), rope(norm(k));  k, v go to place `position` mod T of the cache
//   h = x + norm(o attention(q, cache));  gate, up = gate_up norm(h);  y = h + norm(down(geglu(gate, up)))
//
// Ladder, CPU:
//   v0_composed    the steps as separate ops
// Ladder, CUDA:
//   v0_composed    as on the CPU: 13 launches
//   v1_one_launch  everything in one kernel, whose blocks wait for each other five times; sm_90, 16 bits, up to 8 texts
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

[[gnu::weak]] void gemma3_decode_cuda_v1_one_launch(const Gemma3DecodeArgs&, Queue&);
bool gemma3_decode_cuda_v1_accepts(const Gemma3DecodeArgs&, const Target&);
Footprint gemma3_decode_cuda_v1_footprint(const Gemma3DecodeArgs&, const Target&);

}  // namespace rooflab::kernels
