// cross_entropy_backward: dx[n, v] = (exp(x[n, v] - lse[n]) - [v = target[n]]) g[n], the gradient of the logits (N, V)
// from the log-sum-exp of each row, which is a number and the rest that its rounding has left out. g[n] is the gradient
// of the row's loss: dloss, divided by the count for a mean. The probabilities are recomputed. A row whose target is
// ignore_index gets zeros. A target that is not a class is an error as in cross_entropy; on a GPU its row gets NaN.
//
// FLOPs: 3 per logit (subtract, exp, multiply) and 2 per row (one hot, count). Compulsory bytes: logits, targets, lse,
// its rest and dloss read once, the gradient written once. Roof: memory bandwidth.
#pragma once

#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {

struct CrossEntropyBackwardArgs {
  const void* dloss;     // (N), or one number; in dtype, or in lse's type when wide_loss
  int64_t dloss_stride;  // 1, or 0
  const void* logits;    // (N, V), elements of a row adjacent
  Classes classes;
  const void* lse;       // (N), float; double for double
  const void* lse_rest;  // the same; null: zeros
  const void* count;     // divides dloss; one number of lse's type, or null
  void* dlogits;         // (N, V), contiguous; may be the memory of logits, if those are contiguous
  bool wide_loss;
  int64_t n, v;
  int64_t row_stride;  // of logits, in elements
  DType dtype;
};

extern const Ladder<CrossEntropyBackwardArgs> cross_entropy_backward_ladder;

}  // namespace rooflab::kernels
