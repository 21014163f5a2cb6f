// attention_backward: the gradients of attention's q, k and v, with P recomputed. S is the scaled and masked scores,
// P = exp(S - lse), and D_i = sum_d dO[i, d] O[i, d]. For each batch and head,
//   dV = P^T dO    dP = dO V^T    dS = P * (dP - D)    dQ = scale dS K    dK = scale dS^T Q.
// dK and dV are summed over the query heads that share a key head. A query that sees no key has lse = -inf and
// contributes nothing.
//
// Ladder, CPU:
//   v0_composed     the textbook form, made of other ops
//   v1_flash        the algorithm in plain loops on one thread, written to be read
//   v2_flash_simd   all five products by one register tile; always deterministic
// Ladder, CUDA:
//   v0_composed     as on the CPU
//   v1_flash        plain multiply-adds, two launches; always deterministic
//   v2_tensor_core  mma.sync, a block keeps its keys, dQ is accumulated in device memory; 16 bits
//   v3_hopper       wgmma and TMA, softmax overlaps with products, dQ accumulated by bulk reductions
//   v4_split_bf16   float32 as three bfloat16 parts, six mma.sync for each product of v1; always deterministic
//
// [measured attention_backward] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                               H4 D128
//                      H4 D128    L2048
//                  L512 causal   causal
//                      float32  float32
//                      GFLOP/s  GFLOP/s
//   v0_composed            110      102
//   v1_flash               5.2      5.2
//   v2_flash_simd          338      376
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                   H4 D128
//                     L2048  D64 L16384  D128 L16384  D128 L16384  D256 L16384
//                    causal        full         full       causal         full
//                   float32    bfloat16     bfloat16     bfloat16     bfloat16
//                   TFLOP/s     TFLOP/s      TFLOP/s      TFLOP/s      TFLOP/s
//   v0_composed          12          67          138           56          249
//   v1_flash            8.3          18           18           19           19
//   v2_tensor_core        -         240          262          266          223
//   v3_hopper             -         551          570          571          524
//   v4_split_bf16        21           -            -            -            -
//   torch                18         457          582          594          354
//   torch flash           -         269          282          287          250
//   torch cudnn           -         475          592          571          374
// [end measured]
//
// FLOPs: 10 D_h + 4 for each visible pair (five products) and 2 for each element of O. Compulsory bytes: q, k, v, out,
// dout, lse and mask read once, dq, dk and dv written once. Compute binds from a few hundred tokens on.
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
  float* delta;        // scratch of the rung (B, H, rounded L_q): D
  float* dq_sum;       // scratch of rungs that need it (B, H, rounded L_q, D_h): dQ before it is rounded to 16 bits
  bool deterministic;  // the same bits on every run
};

// Query rows of the scratch, rounded up so that whole tiles fit.
ROOFLAB_HOST_DEVICE int64_t attention_rounded_rows(int64_t q_length) { return (q_length + 127) / 128 * 128; }

void attention_backward_cpu_v1_flash(const AttentionBackwardArgs&, Queue&);
ROOFLAB_PER_ISA(attention_backward_cpu_v2_flash_simd, AttentionBackwardArgs)
Footprint attention_backward_cpu_v1_footprint(const AttentionBackwardArgs&, const Target&);
ROOFLAB_FOOTPRINT_PER_ISA(attention_backward_cpu_v2_footprint, AttentionBackwardArgs)

// The CUDA rungs are declared weak so that a build without CUDA links. What a rung accepts and starts needs no CUDA.
[[gnu::weak]] void attention_backward_cuda_v1_flash(const AttentionBackwardArgs&, Queue&);
[[gnu::weak]] void attention_backward_cuda_v2_tensor_core(const AttentionBackwardArgs&, Queue&);
[[gnu::weak]] void attention_backward_cuda_v3_hopper(const AttentionBackwardArgs&, Queue&);
[[gnu::weak]] void attention_backward_cuda_v4_split_bf16(const AttentionBackwardArgs&, Queue&);
bool attention_backward_cuda_v1_accepts(const AttentionBackwardArgs&, const Target&);
bool attention_backward_cuda_v2_accepts(const AttentionBackwardArgs&, const Target&);
bool attention_backward_cuda_v3_accepts(const AttentionBackwardArgs&, const Target&);
bool attention_backward_cuda_v4_accepts(const AttentionBackwardArgs&, const Target&);
Footprint attention_backward_cuda_v1_footprint(const AttentionBackwardArgs&, const Target&);
Footprint attention_backward_cuda_v2_footprint(const AttentionBackwardArgs&, const Target&);
Footprint attention_backward_cuda_v3_footprint(const AttentionBackwardArgs&, const Target&);
Footprint attention_backward_cuda_v4_footprint(const AttentionBackwardArgs&, const Target&);

// The scratch of a CUDA rung is one block: delta, followed by dq_sum where dQ is accumulated in device memory.
inline int64_t attention_backward_scratch_floats(const AttentionBackwardArgs& args, bool has_dq_sum) {
  const AttentionArgs& forward = args.forward;
  const int64_t rows = forward.batch * forward.heads * attention_rounded_rows(forward.q_length);
  return rows * (has_dq_sum ? 1 + forward.head_size : 1);
}
inline AttentionBackwardArgs attention_backward_with_scratch(AttentionBackwardArgs args, bool has_dq_sum,
                                                             Queue& queue) {
  args.delta = queue.scratch<float>(attention_backward_scratch_floats(args, has_dq_sum));
  args.dq_sum = has_dq_sum ? args.delta + attention_backward_scratch_floats(args, false) : nullptr;
  return args;
}

// The blocks of v2: how many columns they have room for, how many of them fit the registers of a multiprocessor, and
// their shared memory: pairs of tiles of 64 rows, one pair that stays and `stages` pairs that are streamed, P and dS,
// and two sets of statistics.
constexpr int attention_backward_v2_head(int64_t head_size) {
  return head_size <= 64 ? 64 : head_size <= 128 ? 128 : 256;
}
constexpr int attention_backward_v2_blocks(int64_t head) { return head > 128 ? 1 : head > 64 ? 2 : 3; }
constexpr int64_t attention_backward_v2_bytes(int64_t head, int stages) {
  constexpr int64_t kRows = 64;
  return (1 + stages) * 2 * kRows * head * 2 + 2 * kRows * kRows * 2 + 2 * 2 * kRows * 4;
}
// 2, 1, or 0 where no block fits. Another block on a multiprocessor hides more latency than a second stage.
int attention_backward_v2_stages(int64_t head, const Target&);

// v4: scratch for delta and for the parts of q, dout, k and v. Shared memory: three parts of four tiles and of the
// weights.
inline int64_t attention_backward_v4_scratch_bytes(const AttentionBackwardArgs& args) {
  const AttentionArgs& f = args.forward;
  return attention_backward_scratch_floats(args, false) * 4 +
         2 * 2 *
             (attention_split_elements(f.batch, f.heads, f.q_length, f.head_size) +
              attention_split_elements(f.batch, f.kv_heads, f.kv_length, f.head_size));
}
constexpr int64_t attention_backward_v4_bytes(int64_t head) {
  constexpr int64_t kRows = 64, kParts = 3;
  return 4 * kParts * kRows * head * 2 + kParts * kRows * kRows * 2 + 2 * kRows * 4;
}

}  // namespace rooflab::kernels
