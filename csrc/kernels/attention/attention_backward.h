// attention_backward: the gradients of attention's q, k and v by recomputation. With P = exp(S - lse), S the scaled and
// masked scores, D_i = sum_d dO[i, d] O[i, d], and, for each batch and head,
//   dV = P^T dO    dP = dO V^T    dS = P * (dP - D)    dQ = scale dS K    dK = scale dS^T Q.
// dK and dV add up the query heads that share a key head. A query that sees no key has lse = -inf and gives nothing.
//
// FLOPs: 10 D_h + 4 for each visible pair (five products) and 2 for each element of O. Compulsory bytes: q, k, v, out,
// dout, lse and mask read once, dq, dk and dv written once. Compute binds from some hundred tokens on.
#pragma once

#include "kernels/attention/attention.h"

namespace rooflab::kernels {

struct AttentionBackwardArgs {
  AttentionArgs forward;  // q, k, v, out, lse, mask and all sizes; out and lse are inputs here, partial is null
  const void* dout;       // (B, H, L_q, D_h)
  void* dq;               // (B, H, L_q, D_h)
  void* dk;               // (B, H_kv, L_kv, D_h)
  void* dv;               // (B, H_kv, L_kv, D_h)
  AttentionStrides dout_strides, dq_strides, dk_strides, dv_strides;
  float* delta;        // scratch (B, H, rounded L_q): D
  float* dq_sum;       // scratch (B, H, rounded L_q, D_h): dQ before it is rounded to 16 bits; null in float32
  bool deterministic;  // the same bits on every run
};

// Query rows of the scratch, so that whole tiles fit.
ROOFLAB_HOST_DEVICE int64_t attention_rounded_rows(int64_t q_length) { return (q_length + 127) / 128 * 128; }

// The ladder on two cores, float32, B1 H4 D_h 128, GFLOP/s at L = 512, 1024, 2048 on a Xeon with AVX-512 (in one run
// PyTorch's SDPA gave 197, 257, 263 full, 109, 167, 211 causal):
//   v1_flash       the algorithm in plain loops on one thread, to be read
//   v2_flash_simd  five products by one register tile: 269, 280, 254 full, 230, 252, 280 causal; always deterministic
void attention_backward_cpu_v1_flash(const AttentionBackwardArgs&, Stream);
ROOFLAB_PER_ISA(attention_backward_cpu_v2_flash_simd, AttentionBackwardArgs)

// CUDA, weak so that a build without CUDA links; each rung comes with what it accepts. Measured on one H200:
//   v1 flash        plain multiply-adds, two launches, always the same bits fp32 19, 19, 17 TFLOP/s at D_h 64, 128, 256
//   v2 tensor_core  mma.sync, keys stay, dQ is added up in device memory  bf16 256, 279, 235 TFLOP/s full and 249, 285,
//                   239 causal at D_h 64, 128, 256, L16384; deterministic 199, 233, 191
//   v3 hopper       wgmma and TMA, softmax beside other products, dQ sent  bf16 563, 579, 532 full and 555, 592, 515
//                   by bulk reduction                                      causal; deterministic 491, 468, 317
[[gnu::weak]] void attention_backward_cuda_v1_flash(const AttentionBackwardArgs&, Stream);
[[gnu::weak]] void attention_backward_cuda_v2_tensor_core(const AttentionBackwardArgs&, Stream);
[[gnu::weak]] void attention_backward_cuda_v3_hopper(const AttentionBackwardArgs&, Stream);
[[gnu::weak]] bool attention_backward_cuda_v1_accepts(const AttentionBackwardArgs&);
[[gnu::weak]] bool attention_backward_cuda_v2_accepts(const AttentionBackwardArgs&);
[[gnu::weak]] bool attention_backward_cuda_v3_accepts(const AttentionBackwardArgs&);

}  // namespace rooflab::kernels
