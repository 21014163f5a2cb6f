// What the parts of the Gemma-3 layer share inside nn.
#pragma once

#include "nn/gemma3.h"
#include "ops/ops.h"

namespace rooflab::nn {

// The rows of all weights as those of one, where they lie one behind the other in memory.
std::optional<Tensor> joined(const Tensors& weights);

// The layer as ops of their own.
Tensor in_steps(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache);

}  // namespace rooflab::nn
