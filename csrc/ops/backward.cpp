// Gradients by the tape: what the engine needs from the ops, and what backward rules share.
#include "autograd/engine.h"
#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"

namespace rooflab {
namespace {

const autograd::Arithmetic kArithmetic{[](const Tensor& a, const Tensor& b) { return a + b; },
                                       [](const Tensor& sum, const Tensor& x) { write(ElementwiseOp::kAdd, sum, x); },
                                       [](const Tensor& x) { return copy(x); }};

// Gradients that are not given are 1, which requires outputs of one element.
Tensors with_ones(const Tensors& outputs, Tensors gradients) {
  const OpScope scope("backward", OpScope::kName);
  RL_CHECK(outputs.size() == gradients.size(), "backward", "expected ", outputs.size(), " gradients, got ",
           gradients.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (gradients[i].defined()) continue;
    RL_CHECK(y.numel() == 1, "backward", "gradient: must be given for a tensor of shape ", y.shape(),
             "; without it, expected a tensor of one element");
    gradients[i] = Tensor::empty(y.shape(), y.dtype(), y.device());
    fill(gradients[i], {1, 1});
  }
  return gradients;
}

}  // namespace

void backward(const Tensors& outputs, Tensors gradients, bool retain_graph) {
  const autocast::Off off;  // rules compute in the dtypes that the forward pass has chosen
  autograd::backward(outputs, with_ones(outputs, std::move(gradients)), retain_graph, kArithmetic);
}

Tensors grad(const Tensors& outputs, Tensors gradients, const Tensors& inputs, bool retain_graph) {
  const autocast::Off off;
  return autograd::grad(outputs, with_ones(outputs, std::move(gradients)), inputs, retain_graph, kArithmetic);
}

Tensor sum_to(const Tensor& gradient, const Shape& shape) {
  if (gradient.shape() == shape) return gradient;
  const int added = gradient.ndim() - shape.size();
  Shape dims;
  for (int i = 0; i < gradient.ndim(); ++i)
    if (i < added || (shape[i - added] == 1 && gradient.shape()[i] != 1)) dims.push_back(i);
  return dims.empty() ? gradient.view(shape) : sum(gradient, dims, true).view(shape);
}

}  // namespace rooflab
