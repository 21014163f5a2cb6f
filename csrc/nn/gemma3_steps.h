// What the parts of the Gemma-3 layer share inside nn.
#pragma once

#include "nn/gemma3.h"
#include "ops/ops.h"

namespace rooflab::nn {

// The rows of all weights as one weight, if they are adjacent in memory.
std::optional<Tensor> joined(const Tensors& weights);

// The layer, with each step as a separate op.
Tensor in_steps(const Gemma3Layer& layer, const Tensor& x, const Tensor& cos, const Tensor& sin, const KvCache* cache);

// Layers for one new token of each text, which sees all that the caches hold, in fewer launches: an op that ends a step
// begins the next one. All layers are fused, with the same eps and adjacent weights.
Tensor in_merged_steps(std::span<const Gemma3DecodeStep> steps, Tensor x);

}  // namespace rooflab::nn
