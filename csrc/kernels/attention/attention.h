// attention: out[i] = sum_j p[i, j] v[j] with p[i, :] = softmax_j(scale * q[i] . k[j] + mask[i, j]), for each batch and
// query head. Query head h reads key/value head h / (H / H_kv). A query that may see no key gives a row of zeros and
// lse = -inf; a NaN in a query stays in its row.
//
// The last query stands beside the last key: query i has position p = i + L_kv - L_q. is_causal shows it the keys j <=
// p, a window of w those with |p - j| < w.
//
// FLOPs: 4 D_h + 5 for each (query, key) pair that causality and window allow: two products and softmax's 5.
// Compulsory bytes: q, k, v, mask and out once, lse once when asked for. In 16 bits a byte of K or V meets one
// FLOP for each of the L_q H / H_kv query rows that share it: compute binds from some hundred rows on, memory in
// decode.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"
#include "kernels/common/host_device.h"

namespace rooflab::kernels {

// In elements. The elements of one head of one token are adjacent.
struct AttentionStrides {
  int64_t batch, head, token;
};

struct AttentionArgs {
  const void* q;      // (B, H, L_q, D_h)
  const void* k;      // (B, H_kv, L_kv, D_h)
  const void* v;      // (B, H_kv, L_kv, D_h)
  void* out;          // (B, H, L_q, D_h)
  float* lse;         // (B, H, L_q), contiguous: log sum_j exp(score), natural; null when nobody asks
  float* partial;     // scratch of attention_partial_floats(args) for the split rungs; null when that is 0
  const void* mask;   // (B, H, L_q, L_kv) by mask_strides (0 repeats); null for none
  bool mask_is_bool;  // true: bytes, 0 hides the key; false: numbers of `dtype`, added to the scaled score
  int64_t mask_strides[4];
  int64_t batch, heads, kv_heads, q_length, kv_length, head_size;
  AttentionStrides q_strides, k_strides, v_strides, out_strides;
  float scale;
  bool is_causal;
  int64_t window;  // L_q + L_kv when there is none
  DType dtype;     // float32, float16 or bfloat16
};

// The keys [begin, end) that query row i may see, mask aside; begin == end when none.
struct KeyRange {
  int64_t begin, end;
};
ROOFLAB_HOST_DEVICE KeyRange visible_keys(int64_t i, int64_t q_length, int64_t kv_length, bool is_causal,
                                          int64_t window) {
  const int64_t position = i + kv_length - q_length;
  int64_t begin = position - window + 1, end = is_causal ? position + 1 : position + window;
  begin = begin < 0 ? 0 : begin;
  end = end > kv_length ? kv_length : end;
  return {begin, end < begin ? begin : end};
}

// Rungs that work in base 2 raise lower finite scores to this: times log2(e) the lowest float would be -inf, and a mask
// made of it would hide keys.
inline constexpr float kAttentionLowestScore = -2e38f;

// Few queries over many keys are split over the keys: attention_splits parts for each key head, the same on every
// device.
inline constexpr int64_t kAttentionSplitRows = 64;    // the most query rows (L_q * H / H_kv) of a split rung
inline constexpr int64_t kAttentionSplitParts = 264;  // parts at work at a time: two for each multiprocessor of an H200
inline constexpr int64_t kAttentionSplitKeys = 64;    // the fewest keys of a part
int64_t attention_splits(const AttentionArgs&);
// Each part leaves a row of D_h sums, its maximum and its sum of exponentials.
inline int64_t attention_partial_floats(const AttentionArgs& args) {
  const int64_t splits = attention_splits(args);
  return splits == 1 ? 0 : splits * args.batch * args.heads * args.q_length * (args.head_size + 2);
}

// The ladder on two cores, float32, B1 H4 D_h 128, GFLOP/s at L = 512, 1024, 2048, 4096 on a Xeon with AVX-512 (in one
// run PyTorch's SDPA gave 223, 263, 213, 255 full, 115, 165, 196, 232 causal, MKL's matmul of 2048^3 298):
//   v1_flash       the algorithm in plain loops on one thread, to be read
//   v2_flash_simd  register tiles, queries across the lanes: 257, 284, 275, 299 full, 229, 240, 276, 288 causal. On a
//                  Zen 3 core with AVX2: 82 to 87 of the 103 that its FMA units can do, the packed matmul 85 to 92
//   v3_split_kv    decode, bound by memory: 18 to 28 GB/s of K and V where a copy moves 25 to 30 (PyTorch 9 to 28)
void attention_cpu_v1_flash(const AttentionArgs&, Stream);
ROOFLAB_PER_ISA(attention_cpu_v2_flash_simd, AttentionArgs)
ROOFLAB_PER_ISA(attention_cpu_v3_split_kv, AttentionArgs)
bool attention_cpu_v3_accepts(const AttentionArgs&);

// CUDA, weak so that a build without CUDA links; each rung comes with what it accepts. Measured on one H200:
//   v1 flash        plain multiply-adds: 64 queries stay, keys stream  fp32 27, 30, 28 TFLOP/s at D_h 64, 128, 256
//   v2 tensor_core  mma.sync, tiles by cp.async, weights stay in registers  bf16 316, 351, 329 TFLOP/s full and 303,
//                   324, 335 causal at D_h 64, 128, 256, L16384 (PyTorch's flash attention: 308, 352, 324 full)
//   v3 hopper       wgmma from tiles by TMA, warpgroups take turns, softmax runs beside products   bf16 543, 707, 811
//                   TFLOP/s full and 539, 732, 820 causal at D_h 64, 128, 256, L16384; 497, 640, 726 and 401, 577, 631
//                   at L2048: 1.6 to 3.3 times PyTorch's flash attention, 1.03 to 1.36 times cuDNN's
//   v4 split_kv  decode: keys split, heads of a group in one tile  bf16 4.4 TB/s (B64 L4096 H32:8 D128; copy: 4.2), 3.9
//                (B8 L32768 H4:1 D256); B1 L4096 7.9 us, mostly launch and combine
[[gnu::weak]] void attention_cuda_v1_flash(const AttentionArgs&, Stream);
[[gnu::weak]] void attention_cuda_v2_tensor_core(const AttentionArgs&, Stream);
[[gnu::weak]] void attention_cuda_v3_hopper(const AttentionArgs&, Stream);
[[gnu::weak]] void attention_cuda_v4_split_kv(const AttentionArgs&, Stream);
[[gnu::weak]] bool attention_cuda_v1_accepts(const AttentionArgs&);
[[gnu::weak]] bool attention_cuda_v2_accepts(const AttentionArgs&);
[[gnu::weak]] bool attention_cuda_v3_accepts(const AttentionArgs&);
[[gnu::weak]] bool attention_cuda_v4_accepts(const AttentionArgs&);

}  // namespace rooflab::kernels
