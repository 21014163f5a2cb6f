// attention_backward: the gradients of attention's q, k and v, with P recomputed. S is the scaled and masked scores,
// P = exp(S - lse), and D_i = sum_d dO[i, d] O[i, d]. lse is a float and the rest that its rounding has left out:
// where scores are large, that rest is most of what P depends on. For each batch and head,
//   dV = P^T dO    dP = dO V^T    dS = P * (dP - D)    dQ = scale dS K    dK = scale dS^T Q.
// dK and dV are summed over the query heads that share a key head. A query that sees no key has lse = -inf and
// contributes nothing.
//
// FLOPs: 10 D_h + 4 for each visible pair (five products) and 2 for each element of O. Compulsory bytes: q, k, v, out,
// dout, lse, its rest and mask read once, dq, dk and dv written once. Compute binds from a few hundred tokens on.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct AttentionBackwardArgs {
  AttentionArgs forward;  // all of it but partial; out, lse and lse_rest (null: zeros) are inputs here
  const void* dout;       // (B, H, L_q, D_h)
  void* dq;               // (B, H, L_q, D_h)
  void* dk;               // (B, H_kv, L_kv, D_h)
  void* dv;               // (B, H_kv, L_kv, D_h)
  AttentionStrides dout_strides, dq_strides, dk_strides, dv_strides;
  float* delta;         // scratch of the rung (B, H, rounded L_q): D
  float* dq_sum;        // scratch of rungs that need it (B, H, rounded L_q, D_h): dQ before it is rounded to 16 bits
  uint32_t* mask_bits;  // scratch of v2: see attention_mask_bits.cuh; null where there is no bool mask
  bool deterministic;   // the same bits on every run
};

// Query rows of the scratch, rounded up so that whole tiles fit.
ROOFLAB_HOST_DEVICE int64_t attention_rounded_rows(int64_t q_length) { return (q_length + 127) / 128 * 128; }

// The scratch of a CUDA rung is one block: delta, followed by dq_sum where dQ is accumulated in device memory, followed
// by v2's mask_bits.
inline int64_t attention_backward_scratch_floats(const AttentionBackwardArgs& args, bool has_dq_sum) {
  const AttentionArgs& forward = args.forward;
  const int64_t rows = forward.batch * forward.heads * attention_rounded_rows(forward.q_length);
  return rows * (has_dq_sum ? 1 + forward.head_size : 1);
}
inline AttentionBackwardArgs attention_backward_with_scratch(AttentionBackwardArgs args, bool has_dq_sum, Queue& queue,
                                                             int64_t mask_words = 0) {
  const int64_t floats = attention_backward_scratch_floats(args, has_dq_sum);
  args.delta = queue.scratch<float>(floats + mask_words);
  args.dq_sum = has_dq_sum ? args.delta + attention_backward_scratch_floats(args, false) : nullptr;
  args.mask_bits = mask_words > 0 ? reinterpret_cast<uint32_t*>(args.delta + floats) : nullptr;
  return args;
}

// v1: the rows of queries that a block keeps, of q and of dout. It never keeps more keys than that.
AttentionFlashTile attention_backward_v1_tile(const AttentionArgs&, const Target&);

// The blocks of v2: how many of them fit the registers of a multiprocessor, and their shared memory: pairs of tiles of
// 64 rows, one pair that stays and `stages` pairs that are streamed, P and dS, and two sets of statistics.
constexpr int attention_backward_v2_blocks(int64_t head) { return head > 128 ? 1 : head > 64 ? 2 : 3; }
constexpr int64_t attention_backward_v2_bytes(int64_t head, int stages) {
  constexpr int64_t kRows = 64;
  return (1 + stages) * 2 * kRows * head * 2 + 2 * kRows * kRows * 2 + 2 * 2 * kRows * 4;
}
// 2 or 1. Another block on a multiprocessor hides more latency than a second stage.
int attention_backward_v2_stages(int64_t head, const Target&);

// A bool mask as bits, of which a word holds those of 32 queries and one key: (masks, rounded L_q / 32, rounded L_kv).
// A dimension along which the mask repeats is there once.
ROOFLAB_HOST_DEVICE int64_t attention_mask_blocks(const AttentionArgs& args) {
  return attention_rounded_rows(args.q_length) / 32;
}
ROOFLAB_HOST_DEVICE int64_t attention_mask_keys(const AttentionArgs& args) {
  return attention_rounded_rows(args.kv_length);
}
inline int64_t attention_backward_v2_mask_words(const AttentionArgs& args) {
  if (args.mask == nullptr || !args.mask_is_bool) return 0;
  return attention_mask_masks(args) * attention_mask_blocks(args) * attention_mask_keys(args);
}

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
  return 4 * kParts * kRows * head * 2 + kParts * kRows * kRows * 2 + 3 * kRows * 4;
}

extern const Ladder<AttentionBackwardArgs> attention_backward_ladder;

}  // namespace rooflab::kernels
