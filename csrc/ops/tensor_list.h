// Ops that take all gradients of a model at once.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// float64 (): the sum of the squares of all elements of all tensors, which are of one floating dtype and on one device.
Tensor sum_squares(const Tensors& tensors, std::string_view variant = {});

// Multiplies all tensors, which are of one floating dtype, in place by the factor, float64 () on their device.
void scale_tensors(const Tensors& tensors, const Tensor& factor, std::string_view variant = {});

}  // namespace rooflab
