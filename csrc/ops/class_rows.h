// Logits as rows of classes, and their targets: what cross_entropy and its backward share.
#pragma once

#include "kernels/cross_entropy/cross_entropy.h"
#include "ops/ops.h"

namespace rooflab {

// The dimension of the classes: the only one, or the second.
inline int class_dim(const Tensor& logits) { return logits.ndim() == 1 ? 0 : 1; }

// A view with the classes last. The second function is its inverse: it moves the classes back to where logits have
// them.
Tensor with_classes_last(const Tensor& logits);
Tensor with_classes_second(const Tensor& rows);

// ValueError if they do not match.
void check_class_rows(const char* op, const Tensor& logits, const Tensor& target);

// Which targets count, and the classes that they name, with size 1 in the class dimension of the logits. Targets that
// do not count are given class 0.
struct CountedTargets {
  Tensor counts, classes;
};
CountedTargets counted_targets(const Tensor& logits, const Tensor& target, int64_t ignore_index);

// In the form that kernels take; `target` is contiguous.
kernels::Classes as_classes(const Tensor& target, int64_t ignore_index, int64_t limit);

// The dtype of a log-sum-exp and of a count.
inline DType sum_dtype(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

}  // namespace rooflab
