// Gradients of ops that work on rows, as separate ops, for the backward rules of those ops.
#pragma once

#include <string_view>

#include "core/tensor.h"

namespace rooflab {

// The gradients of x and, if they are wanted, of the weight and the bias (otherwise not defined). A weight that is not
// defined stands for ones.
struct NormGradients {
  Tensor dx, dweight, dbias;
};
NormGradients rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps, bool zero_centered,
                                bool wants_dweight, std::string_view variant = {});
NormGradients layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps,
                                  bool wants_dweight, bool wants_dbias, std::string_view variant = {});

// The gradient of x from y = softmax(x, dim).
Tensor softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant = {});
// From y = log_softmax(x, dim).
Tensor log_softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant = {});

}  // namespace rooflab
