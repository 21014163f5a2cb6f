// Gradients of activations as separate ops, for the backward rules of the activations.
#pragma once

#include <string_view>

#include "kernels/activation_backward/activation_backward.h"
#include "ops/ops.h"

namespace rooflab {

// dy times the slope of gelu or silu at a.
Tensor activation_backward(kernels::Activation activation, const Tensor& dy, const Tensor& a,
                           std::string_view variant = {});

// The gradients of gelu(a) b or silu(a) b; all have one shape.
struct GatedGradients {
  Tensor da, db;
};
GatedGradients gated_backward(kernels::Activation activation, const Tensor& dy, const Tensor& a, const Tensor& b,
                              std::string_view variant = {});

// The first of these as a backward rule uses it: in a trace it is made of elementwise ops, which the fusing compiler
// joins with their neighbours. Where a was broadcast, the result is not yet summed to its shape.
Tensor activation_gradient(kernels::Activation activation, const Tensor& dy, const Tensor& a);

}  // namespace rooflab
