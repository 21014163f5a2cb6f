// layer_norm_backward: checks and cost; and the rule composed of other ops.
#include "kernels/layer_norm_backward/layer_norm_backward.h"

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/norm_backward.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::LayerNormBackwardArgs;

constexpr int64_t kFlops = 12, kWeightFlops = 1, kDweightFlops = 2, kDbiasFlops = 1;  // per element

LayerNormBackwardArgs planned_args(const Tensor& x, double eps, bool has_dweight, bool has_dbias) {
  auto args = planned_norm_args<LayerNormBackwardArgs>(x, eps, has_dweight);
  args.has_dbias = has_dbias;
  return args;
}

NormGradients composed_gradients(const Tensor& dy_in, const Tensor& x_in, const Tensor& weight, double eps,
                                 bool wants_dweight, bool wants_dbias) {
  const Tensor x = in_double(x_in), dy = in_double(dy_in);
  const Tensor c = x - mean(x, {-1}, true);
  const Tensor r = elementwise(ElementwiseOp::kRsqrt, mean(c * c, {-1}, true) + eps);
  const Tensor n = c * r;
  const Tensor dn = weight.defined() ? dy * in_double(weight) : dy;
  NormGradients gradients;
  gradients.dx = cast(r * (dn - mean(dn, {-1}, true) - n * mean(dn * n, {-1}, true)), x_in.dtype());
  if (wants_dweight) gradients.dweight = cast(sum_to(dy * n, weight.shape()), x_in.dtype());
  if (wants_dbias) gradients.dbias = sum_to(dy_in, {x.shape().back()});
  return gradients;
}

void run(const Call& call) {
  const NormOperands operands(call);
  const bool has_dweight = call.get<bool>("has_dweight"), has_dbias = call.get<bool>("has_dbias");
  LayerNormBackwardArgs args = planned_args(call.inputs[1], call.get<double>("eps"), has_dweight, has_dbias);
  operands.put_into(args);
  args.dx = call.outputs[0].data();
  if (has_dweight) args.dweight = call.outputs[1].data();
  if (has_dbias) args.dbias = call.outputs.back().data();
  run_rung(kernels::layer_norm_backward_ladder, call, args);
}

const Op kOp("layer_norm_backward", run);

NormGradients fused_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps, bool wants_dweight,
                              bool wants_dbias, std::string_view variant) {
  const NormGradients gradients = empty_norm_gradients(x, wants_dweight, wants_dbias);
  const Tensors inputs{dy, x, weight}, outputs = as_outputs(gradients);
  int64_t written = 0;
  for (const Tensor& output : outputs) written += output.nbytes();
  const int64_t flops = kFlops + (weight.defined() ? kWeightFlops : 0) + (wants_dweight ? kDweightFlops : 0) +
                        (wants_dbias ? kDbiasFlops : 0);
  submit({&kOp,
          inputs,
          outputs,
          {{"eps", eps}, {"has_dweight", wants_dweight}, {"has_dbias", wants_dbias}},
          {0, flops * x.numel(), compulsory_bytes(inputs), written},
          std::string(variant)});
  return gradients;
}

}  // namespace

NormGradients layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps,
                                  bool wants_dweight, bool wants_dbias, std::string_view variant) {
  const OpScope scope("layer_norm_backward");
  check_gradient_of_rows("layer_norm_backward", "x", dy, x);
  check_eps("layer_norm_backward", eps);
  if (weight.defined()) check_parameter("layer_norm_backward", "weight", x, weight);
  const bool is_empty = x.shape().back() == 0;  // and so are all results
  if (is_empty || !kernels::layer_norm_backward_ladder.composes(
                      x.device(), planned_args(x, eps, wants_dweight, wants_dbias), variant))
    return fused_gradients(dy, x, weight, eps, wants_dweight, wants_dbias, variant);
  const NormGradients gradients = composed_gradients(dy, x, weight, eps, wants_dweight, wants_dbias);
  scope.done();  // its parts have counted their work
  return gradients;
}

}  // namespace rooflab
