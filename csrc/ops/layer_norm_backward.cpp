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

struct Options {
  double eps;
  bool has_dweight, has_dbias;
};

LayerNormBackwardArgs args_of(const NormOperands& operands, DType dtype, const Options& options) {
  auto args = operands.args<LayerNormBackwardArgs>(dtype, options.eps, options.has_dweight);
  args.has_dbias = options.has_dbias;
  return args;
}

NormGradients composed_gradients(const Tensor& dy_in, const Tensor& x_in, const Tensor& weight, double eps,
                                 bool wants_dweight, bool wants_dbias) {
  const Tensor x = in_double(x_in), dy = in_double(dy_in);
  const Tensor distances = x - mean(x, {-1}, true), c = distances - mean(distances, {-1}, true);
  const Tensor r = elementwise(ElementwiseOp::kRsqrt, mean(c * c, {-1}, true) + eps);
  const Tensor n = c * r;
  const Tensor dn = weight.defined() ? dy * in_double(weight) : dy;
  NormGradients gradients;
  gradients.dx = cast(r * (dn - mean(dn, {-1}, true) - n * mean(dn * n, {-1}, true)), x_in.dtype());
  if (wants_dweight) gradients.dweight = cast(sum_to(dy * n, weight.shape()), x_in.dtype());
  if (wants_dbias) gradients.dbias = sum_to(dy_in, {x.shape().back()});
  return gradients;
}

void run(const Call<Options>& call) {
  const NormOperands operands(call.inputs);
  LayerNormBackwardArgs args = args_of(operands, call.inputs[1].dtype(), call.options);
  args.dx = call.outputs[0].data();
  if (args.has_dweight) args.dweight = call.outputs[1].data();
  if (args.has_dbias) args.dbias = call.outputs.back().data();
  run_rung(kernels::layer_norm_backward_ladder, call, args);
}

const Op<Options> kOp("layer_norm_backward", run);

NormGradients fused_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, const Options& options,
                              std::string_view variant, int rung) {
  const NormGradients gradients = empty_norm_gradients(x, options.has_dweight, options.has_dbias);
  const Tensors inputs{dy, x, weight}, outputs = as_outputs(gradients);
  int64_t written = 0;
  for (const Tensor& output : outputs) written += output.nbytes();
  const int64_t flops = kFlops + (weight.defined() ? kWeightFlops : 0) + (options.has_dweight ? kDweightFlops : 0) +
                        (options.has_dbias ? kDbiasFlops : 0);
  const Cost cost{0, flops * x.numel(), compulsory_bytes(inputs), written};
  submit(Call(kOp, inputs, outputs, options, cost, variant, rung));
  return gradients;
}

}  // namespace

NormGradients layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps,
                                  bool wants_dweight, bool wants_dbias, std::string_view variant) {
  const OpScope scope("layer_norm_backward");
  check_gradient_of_rows("layer_norm_backward", "x", dy, x);
  check_eps("layer_norm_backward", eps);
  if (weight.defined()) check_parameter("layer_norm_backward", "weight", x, weight);
  const Options options{eps, wants_dweight, wants_dbias};
  if (x.shape().back() == 0) return fused_gradients(dy, x, weight, options, variant, kUnchosen);  // all is empty
  const auto& ladder = kernels::layer_norm_backward_ladder;
  const auto args = args_of(NormOperands(dy, x, weight), x.dtype(), options);
  const int rung = ladder.choose(x.device(), args, variant, kOp.name);
  if (!ladder.composes(rung)) return fused_gradients(dy, x, weight, options, variant, rung);
  const NormGradients gradients = composed_gradients(dy, x, weight, eps, wants_dweight, wants_dbias);
  scope.done();  // its parts have counted their work
  return gradients;
}

}  // namespace rooflab
