// layer_norm: checks and cost.
#include "kernels/layer_norm/layer_norm.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/ops.h"
#include "ops/row_backward.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::LayerNormArgs;

constexpr int64_t kFlops = 5, kWeightFlops = 1, kBiasFlops = 1;  // per element

Tensors gradients(const Gradients& dy, const Tensor& x, const Tensor& weight, double eps) {
  if (!dy.wanted(0) && !dy.wanted(1)) return {Tensor(), Tensor(), sum_to(dy, {x.shape().back()})};
  const auto [dx, dweight, dbias] = layer_norm_backward(dy, x, weight, eps, dy.wanted(1), dy.wanted(2));
  return {dx, dweight, dbias};
}

struct Options {
  double eps;
};

void run(const Call<Options>& call) {
  const Rows rows = as_rows(call.inputs[0]);
  const Tensor weight = as_parameter(call.inputs[1]), bias = as_parameter(call.inputs[2]);
  run_rung(kernels::layer_norm_ladder, call,
           LayerNormArgs{rows.x.data(), weight.data(), bias.data(), call.outputs[0].data(), rows.n, rows.d, rows.stride,
                         call.options.eps, rows.x.dtype()});
}

const Op<Options> kOp("layer_norm", run);

}  // namespace

Tensor layer_norm(const Tensor& x, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                  std::string_view variant) {
  if (const auto dtype = autocast::wanted("layer_norm", {&x, autocast::operand(weight), autocast::operand(bias)}))
    return layer_norm(autocast::in(*dtype, x), autocast::in(*dtype, weight), autocast::in(*dtype, bias), eps, variant);
  const OpScope scope("layer_norm");
  check_floating("layer_norm", "x", x);
  RL_CHECK(x.ndim() > 0, "layer_norm", "x: expected (..., D), got ()");
  check_eps("layer_norm", eps);
  check_parameter("layer_norm", "weight", x, weight);
  check_parameter("layer_norm", "bias", x, bias);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Tensors inputs{x, weight.value_or(Tensor()), bias.value_or(Tensor())};
  const int64_t flops = kFlops + (weight ? kWeightFlops : 0) + (bias ? kBiasFlops : 0);
  const Cost cost{0, flops * x.numel(), compulsory_bytes(inputs), y.nbytes()};
  return submit(
      Call(kOp, inputs, {y}, {eps}, cost, variant), autograd::saving(x, weight),
      [eps](const Gradients& d, const Tensor& x, const Tensor& weight) { return gradients(d, x, weight, eps); });
}

}  // namespace rooflab
