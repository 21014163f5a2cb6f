// What the parts of the Gemma-3 layer share inside nn.
#pragma once

#include "nn/gemma3.h"
#include "ops/ops.h"

namespace rooflab::nn {

// The rows of all weights as one weight, if they are adjacent in memory.
std::optional<Tensor> joined(const Tensors& weights);

// The layer, with each step as a separate op.
Tensor in_steps(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache);

}  // namespace rooflab::nn
