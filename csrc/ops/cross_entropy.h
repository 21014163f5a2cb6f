// The loss of a classifier, and its gradient.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// log(sum(exp(logits))) - logits[target] for each example: logits (V), (N, V) or (N, V, ...), target without V.
// Examples whose target is `ignore_index` have no loss and do not count in the mean.
enum class Reduction { kNone, kMean, kSum };
Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index, Reduction reduction,
                     std::string_view variant = {});

// The gradient of the logits. dloss is one number or has the shape of target, and is divided by `count` if there is
// one; lse has the shape of target, and so has what its rounding has left out (0 if not given). dloss has the dtype of
// the logits, or that of lse. In place, the gradient reuses the memory of the logits, whose rows must be contiguous.
Tensor cross_entropy_backward(const Tensor& dloss, const Tensor& logits, const Tensor& target, const Tensor& lse,
                              const std::optional<Tensor>& lse_rest, const std::optional<Tensor>& count,
                              int64_t ignore_index, std::string_view variant = {}, bool in_place = false);
struct CrossEntropyBackwardOptions {  // of its calls, whose input 1 are the logits
  int64_t ignore_index;
};

// Whether the gradient may reuse the memory of the logits: it has their layout, and only `holders` tensors of the
// caller hold them. A captured graph may not, because a replay would find there what it has written itself.
bool gradient_may_take(const Tensor& logits, int holders);

}  // namespace rooflab
