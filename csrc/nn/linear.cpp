// linear.
#include "autograd/tape.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/matmul_bias.h"
#include "ops/matmul_float32.h"

namespace rooflab::nn {
namespace {

// a b in a dtype. float32 is that of the sums: they are not rounded to the operands' 16 bits first.
Tensor product_in(DType dtype, const Tensor& a, const Tensor& b) {
  const bool widens = dtype == DType::kFloat32 && a.dtype() != DType::kFloat32;
  return widens ? matmul_float32(a, b) : cast(matmul(a, b), dtype);
}

// x as rows.
Tensor rows_of(const Tensor& x) {
  return reshape(x, {numel(Shape(x.shape().begin(), x.shape().end() - 1)), x.size(-1)});
}

// The operands in the dtype of the product.
struct Operands {
  Tensor x, weight;
  std::optional<Tensor> bias;
};

Operands in_low(DType low, const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  const autograd::GradMode off(false);
  return {autocast::in(low, x).detach(), autocast::in(low, weight).detach(), autocast::in(low, bias)};
}

// Whether one launch can do both product and bias. Its kernel takes contiguous x, and a bias of the same dtype.
bool fits_one_launch(const Operands& in) {
  const auto& [x, weight, bias] = in;
  if (!bias || !is_floating(x.dtype()) || !x.is_contiguous()) return false;
  for (const Tensor& other : {weight, *bias})
    if (other.dtype() != x.dtype() || other.device() != x.device()) return false;
  const autograd::GradMode off(false);
  return has_bias_epilogue(rows_of(x), weight.transpose(0, 1), *bias);
}

Tensor without_grad(const Operands& in, bool in_one_launch) {
  const autograd::GradMode off(false);
  const auto& [x, weight, bias] = in;
  if (!in_one_launch) {
    const Tensor y = matmul(x, weight.transpose(0, 1));
    return bias ? y + *bias : y;
  }
  Shape shape = x.shape();
  shape[shape.size() - 1] = weight.size(0);
  return matmul_bias(rows_of(x), weight.transpose(0, 1), *bias).view(shape);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  RL_CHECK(weight.ndim() == 2, "linear", "weight: expected (O, I), got ", weight.shape());
  RL_CHECK(x.ndim() >= 1 && x.size(-1) == weight.size(1), "linear", "x: expected (..., I=", weight.size(1),
           ") for a weight of ", weight.shape(), ", got ", x.shape());
  RL_CHECK(!bias || (bias->ndim() == 1 && bias->size(0) == weight.size(0)), "linear",
           "bias: expected (O=", weight.size(0), "), got ", bias->shape());
  const auto low = autocast::wanted("linear", {&x, &weight, autocast::operand(bias)});
  const Operands used = low ? in_low(*low, x, weight, bias) : Operands{x, weight, bias};
  const bool in_one_launch = fits_one_launch(used);
  if (!low && !in_one_launch) {
    const Tensor y = matmul(x, transpose(weight, 0, 1));
    return bias ? y + *bias : y;
  }
  Tensor y = without_grad(used, in_one_launch);
  if (!autograd::recording(x, weight, bias)) return y;
  // Each gradient comes out of its product in the dtype of the tensor that it belongs to.
  autograd::record("linear", y, {x, weight, bias},
                   autograd::saving(autograd::only_if(autograd::requires_grad(weight), used.x),
                                    autograd::only_if(autograd::requires_grad(x), used.weight)),
                   [shape = x.shape(), x_dtype = x.dtype(), weight_dtype = weight.dtype(),
                    bias_dtype = bias ? bias->dtype() : x.dtype()](const Gradients& d, const Tensor& x,
                                                                   const Tensor& weight) -> Tensors {
                     const Tensor dy = rows_of(d);
                     return {d.wanted(0) ? product_in(x_dtype, dy, weight).view(shape) : Tensor(),
                             d.wanted(1) ? product_in(weight_dtype, dy.transpose(0, 1), rows_of(x)) : Tensor(),
                             d.wanted(2) ? cast(sum_to(dy, {dy.size(1)}), bias_dtype) : Tensor()};
                   });
  return y;
}

}  // namespace rooflab::nn
