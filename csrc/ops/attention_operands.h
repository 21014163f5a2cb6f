// What attention and its backward share: operands checked and brought to (B, H, L, D_h), and what they cost.
#pragma once

#include "kernels/attention/attention.h"
#include "ops/ops.h"

namespace rooflab {

struct AttentionOperands {
  Tensor q, k, v;              // (B, H, L_q, D_h), (B, H_kv, L_kv, D_h) twice; elements of a head adjacent
  std::optional<Tensor> mask;  // (B, H, L_q, L_kv), expanded
  std::optional<Tensor> held;  // how many keys there are; all when empty
  double scale;
  kernels::AttentionArgs args;  // all of it but out and lse; out_strides as they will be

  Tensors tensors() const { return {q, k, v, mask.value_or(Tensor()), held.value_or(Tensor())}; }
};
AttentionOperands attention_operands(const char* op, const Tensor& q, const Tensor& k, const Tensor& v,
                                     const std::optional<Tensor>& mask, const AttentionOptions& options);

// The options as a call carries them, and the operands of a call whose inputs begin with tensors().
std::vector<std::pair<const char*, Attribute>> attention_attributes(const AttentionOptions& options);
AttentionOperands attention_operands(const Call& call);

// x (B, H, L, D_h) with adjacent head elements, as (H, L, D_h) tensors are one batch of it.
Tensor as_heads(const Tensor& x);
kernels::AttentionStrides attention_strides(const Tensor& x);

// A tensor of x's shape whose tokens and heads lie in memory in the order of x's; and its strides, which the choice of
// a rung wants to know before there is one.
Tensor empty_laid_out_like(const Tensor& x);
kernels::AttentionStrides strides_laid_out_like(const Tensor& x);

// Of the log-sum-exp: float32 at least.
DType lse_dtype(DType dtype);

// (query, key) pairs of one head that causality and window let meet.
int64_t visible_pairs(const kernels::AttentionArgs& args);

// The composed rungs' parts. Products of heads that share key heads: a (B, H, M, K) times b (B, H_kv, K, N) gives
// (B, H, M, N).
Tensor heads_product(const Tensor& a, const Tensor& b);
// Scaled scores (B, H, L_q, L_kv), -inf where masked.
Tensor masked_scores(const AttentionOperands& operands);
// v with zeros past the number of keys that the device holds: memory there may be NaN, which a weight of 0 would keep.
Tensor values_that_count(const AttentionOperands& operands);
// Whether the first query, which sees the fewest keys, may see none.
bool may_see_nothing(const kernels::AttentionArgs& args);

}  // namespace rooflab
