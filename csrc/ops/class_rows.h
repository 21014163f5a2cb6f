// Logits as rows of classes, and their targets: what cross_entropy and its backward share.
#pragma once

#include "kernels/cross_entropy/cross_entropy.h"
#include "ops/ops.h"

namespace rooflab {

// The dimension of the classes: the only one, or the second.
inline int class_dim(const Tensor& logits) { return logits.ndim() == 1 ? 0 : 1; }

// A view with the classes last. The other way round, of such a tensor, with the classes where logits have them.
Tensor with_classes_last(const Tensor& logits);
Tensor with_classes_second(const Tensor& rows);

// ValueError when they do not fit together.
void check_class_rows(const char* op, const Tensor& logits, const Tensor& target);

// Which targets count, and the classes that they name, with size 1 where the logits have their classes. Targets that do
// not count name class 0.
struct CountedTargets {
  Tensor counts, classes;
};
CountedTargets counted_targets(const Tensor& logits, const Tensor& target, int64_t ignore_index);

// As kernels take it; `target` is contiguous.
kernels::Classes as_classes(const Tensor& target, int64_t ignore_index, int64_t limit);

// What a log-sum-exp and a count are kept in.
inline DType sum_dtype(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

}  // namespace rooflab
