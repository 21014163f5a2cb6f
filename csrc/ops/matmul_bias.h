// Products of matrices plus a bias.
#pragma once

#include "ops/ops.h"

namespace rooflab {

// a (M, K) times b (K, N), plus bias (N), all of one dtype.
Tensor matmul_bias(const Tensor& a, const Tensor& b, const Tensor& bias, std::string_view variant = {});

// Whether that is one launch here, and not a product and a sum. The operands are as matmul_bias takes them.
bool has_bias_epilogue(const Tensor& a, const Tensor& b, const Tensor& bias);

}  // namespace rooflab
