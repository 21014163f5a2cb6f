// linear.
#include "autograd/tape.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/matmul_float32.h"

namespace rooflab::nn {
namespace {

// a b in a dtype. float32 is that of the sums: they are not rounded to the operands' 16 bits first.
Tensor product_in(DType dtype, const Tensor& a, const Tensor& b) {
  return dtype == DType::kFloat32 ? matmul_float32(a, b) : cast(matmul(a, b), dtype);
}

// x as rows.
Tensor rows_of(const Tensor& x) {
  return reshape(x, {numel(Shape(x.shape().begin(), x.shape().end() - 1)), x.size(-1)});
}

// x weight^T in a 16-bit dtype. Each gradient comes out of its product in the dtype of the tensor that it belongs to.
Tensor low_product(DType low, const Tensor& x, const Tensor& weight) {
  Tensor low_x, low_weight, y;
  {
    const autograd::GradMode off(false);
    low_x = autocast::in(low, x).detach();
    low_weight = autocast::in(low, weight).detach();
    y = matmul(low_x, low_weight.transpose(0, 1));
  }
  if (autograd::recording(x, weight))
    autograd::record("linear", y, {x, weight},
                     autograd::saving(autograd::only_if(autograd::requires_grad(weight), low_x),
                                      autograd::only_if(autograd::requires_grad(x), low_weight)),
                     [shape = x.shape(), x_dtype = x.dtype(), weight_dtype = weight.dtype()](
                         const Gradients& d, const Tensor& x, const Tensor& weight) -> Tensors {
                       const Tensor dy = rows_of(d);
                       return {d.wanted(0) ? product_in(x_dtype, dy, weight).view(shape) : Tensor(),
                               d.wanted(1) ? product_in(weight_dtype, dy.transpose(0, 1), rows_of(x)) : Tensor()};
                     });
  return y;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  RL_CHECK(weight.ndim() == 2, "linear", "weight: expected (O, I), got ", weight.shape());
  RL_CHECK(x.ndim() >= 1 && x.size(-1) == weight.size(1), "linear", "x: expected (..., I=", weight.size(1),
           ") for a weight of ", weight.shape(), ", got ", x.shape());
  RL_CHECK(!bias || (bias->ndim() == 1 && bias->size(0) == weight.size(0)), "linear",
           "bias: expected (O=", weight.size(0), "), got ", bias->shape());
  const auto low = autocast::wanted("linear", {&x, &weight, autocast::operand(bias)});
  const Tensor y = low ? low_product(*low, x, weight) : matmul(x, transpose(weight, 0, 1));
  if (!bias) return y;
  return y + (low ? autocast::in(*low, *bias) : *bias);
}

}  // namespace rooflab::nn
