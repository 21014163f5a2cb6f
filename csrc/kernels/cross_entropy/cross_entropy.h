// cross_entropy: loss[n] = log(sum_v exp(x[n, v])) - x[n, target[n]] over logits (N, V), and the mean or the sum of the
// losses. The log-sum-exp of each row is kept for the gradient, with what its rounding has left out, because logits may
// be large. The probabilities, which would be as large as the logits, are not kept. A row whose target is ignore_index
// has no loss and does not count in the mean. A target outside [0, V) raises an error: on the CPU at once, on a GPU,
// where the row's loss is NaN, when the host next waits for it.
//
// FLOPs: 4 per logit (maximum, subtract, exp, add), and 3 per row (log, two subtractions), or 4 where losses are
// summed. Compulsory bytes: logits and targets once; the loss, the log-sum-exp of each row and its rest, and, for a
// mean, the count.
// Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/out_of_range.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/host_device.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

// The target class of each row.
struct Classes {
  const void* target;  // (N), contiguous, int64 or int32
  DType dtype;
  int64_t ignore_index, limit;  // limit: V
  OutOfRange* report;           // where a GPU reports a target that is no class
};

ROOFLAB_HOST_DEVICE int64_t class_of(const Classes& classes, int64_t row) {
  return classes.dtype == DType::kInt64 ? static_cast<const int64_t*>(classes.target)[row]
                                        : static_cast<const int32_t*>(classes.target)[row];
}

ROOFLAB_HOST_DEVICE OutOfRange out_of_range(const Classes& classes, int64_t target) {
  return {OutOfRange::kClass, target, classes.limit, classes.ignore_index, nullptr};
}

struct CrossEntropyArgs {
  const void* logits;  // (N, V), elements of a row adjacent
  Classes classes;
  void* loss;   // (N), or one number when it is reduced; in dtype, or in lse's type when wide_loss
  void* lse;    // (2, N), float; double for double: the log-sum-exp, and what its rounding has left out
  void* count;  // how many rows are not ignored, one number of lse's type; null unless the reduction is a mean
  bool reduces, wide_loss;
  int64_t n, v;
  int64_t row_stride;  // in elements
  DType dtype;
};

// The log-sum-exp of a row and its rest, of the maximum and of the log of the sum relative to it.
template <class S>
ROOFLAB_HOST_DEVICE void store_lse(const CrossEntropyArgs& args, int64_t row, S maximum, S log_sum) {
  S* const lse = static_cast<S*>(args.lse) + row;
  const S rounded = maximum + log_sum;
  lse[0] = rounded;
  lse[args.n] = rounded - rounded == 0 ? maximum - rounded + log_sum : 0;  // 0 for one that is not finite
}

// Throws ValueError, which names the first target that is neither a class nor ignore_index. CPU only; all threads look.
void check_classes(const Classes& classes, int64_t rows, Queue& queue);

// Elements of scratch, where the losses of all rows are kept until they are summed.
inline int64_t cross_entropy_scratch(const CrossEntropyArgs& args) {
  return args.reduces ? args.n * (args.dtype == DType::kFloat64 ? 8 : 4) : 0;
}

extern const Ladder<CrossEntropyArgs> cross_entropy_ladder;

}  // namespace rooflab::kernels
