// What attention and its backward share: operands checked and converted to (B, H, L, D_h), and their cost.
#pragma once

#include "kernels/attention/attention.h"
#include "ops/ops.h"

namespace rooflab {

struct AttentionOperands {
  Tensor q, k, v;              // (B, H, L_q, D_h), (B, H_kv, L_kv, D_h) twice; elements of a head adjacent
  std::optional<Tensor> mask;  // (B, H, L_q, L_kv), expanded
  std::optional<Tensor> held;  // how many keys there are; empty: all
  double scale;
  kernels::AttentionArgs args;  // complete except for out and lse; out_strides as they will be

  Tensors tensors() const { return {q, k, v, mask.value_or(Tensor()), held.value_or(Tensor())}; }
};
AttentionOperands attention_operands(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const std::optional<Tensor>& mask, const AttentionOptions& options);

// What a call keeps of the options, and the operands of a call whose inputs begin with tensors().
struct AttentionCallOptions {
  bool is_causal, deterministic;
  int64_t window;  // L_q + L_kv when there is no window
  double scale;
};
AttentionCallOptions call_options(const AttentionOperands& operands, bool deterministic);
AttentionOperands attention_operands(const Call<AttentionCallOptions>& call);

// x as (B, H, L, D_h) with adjacent head elements; (H, L, D_h) tensors are a batch of one.
Tensor as_heads(const Tensor& x);
kernels::AttentionStrides attention_strides(const Tensor& x);

// ValueError if a cache of keys and one of values have an element in common, of which neither could be kept.
void check_caches_are_apart(const char* op, const Tensor& k_cache, const Tensor& v_cache);

// A tensor of x's shape whose tokens and heads have x's order in memory; and its strides, which are needed to choose a
// rung before the tensor exists.
Tensor empty_laid_out_like(const Tensor& x);
kernels::AttentionStrides strides_laid_out_like(const Tensor& x);

// The dtype of the log-sum-exp: float32 at least.
DType lse_dtype(DType dtype);

// The number of (query, key) pairs of one head that causality and the window allow.
int64_t visible_pairs(const kernels::AttentionArgs& args);

// Parts of the composed rungs.
// Scaled scores (B, H, L_q, L_kv), -inf where masked.
Tensor masked_scores(const AttentionOperands& operands);
// v with zeros past the number of keys that the device holds. That memory may hold NaN, which a weight of 0 would keep.
Tensor values_that_count(const AttentionOperands& operands);
// Which pairs masked_scores has hidden, as bool; empty if every query sees every key that counts.
std::optional<Tensor> hidden_pairs(const AttentionOperands& operands, const Tensor& scores);
// a b for heads that share key heads: a (B, H, M, K) times b (B, H_kv, K, N) gives (B, H, M, N). Pairs that are hidden
// have weight 0 in a, and they add nothing, NaN or not.
Tensor heads_product(const Tensor& a, const Tensor& b, const std::optional<Tensor>& hidden = std::nullopt);
// x = a b without what hidden pairs have added: four dimensions each, x contiguous (attention_repair.h).
Tensor attention_repair(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& hidden);
// Whether the first query, which sees the fewest keys, might see none.
bool may_see_nothing(const kernels::AttentionArgs& args);

}  // namespace rooflab
