// Functions made of ops. The ops count and record themselves; none of these functions is an op of its own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ops/ops.h"

namespace rooflab::nn {

// linear is x weight^T + bias.
Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias);

// Over `dims`, or over all dimensions when `dims` is empty.

// Tests of each element. The results are bool.
Tensor isnan(const Tensor& x);
Tensor isinf(const Tensor& x);
Tensor isfinite(const Tensor& x);
Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan);

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value);
// `value` has no dimensions, and is converted to the dtype and the device of x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);

// Joining tensors and taking them apart. split and unbind return views.
Tensor stack(const Tensors& tensors, int64_t dim);
Tensors unbind(const Tensor& x, int64_t dim);
Tensors split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim);
// The sizes of parts of `size` each; the last one may be smaller.
std::vector<int64_t> equal_parts(const Tensor& x, int64_t size, int64_t dim);
// Repeats each slice along `dim` `repeats` times; without `dim`, each element of the flattened tensor.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim);

// Sums of products, with dimensions named by letters: "bik,bkj->bij".
Tensor einsum(std::string_view equation, const Tensors& operands);

}  // namespace rooflab::nn
