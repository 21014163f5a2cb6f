// Products of 16-bit matrices in float32.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// a (M, K) and b (K, N), both float16 or both bfloat16, to float32 (M, N).
Tensor matmul_float32(const Tensor& a, const Tensor& b, std::string_view variant = {});

}  // namespace rooflab
