// rms_norm_backward: checks and cost; and the rule composed of other ops.
#include "kernels/rms_norm_backward/rms_norm_backward.h"

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/norm_backward.h"
#include "ops/ops.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RmsNormBackwardArgs;

constexpr int64_t kFlops = 8, kWeightFlops = 1, kOffsetFlops = 1, kDweightFlops = 2;  // per element

struct Options {
  double eps;
  bool zero_centered, has_dweight;
};

RmsNormBackwardArgs args_of(const NormOperands& operands, DType dtype, const Options& options) {
  auto args = operands.args<RmsNormBackwardArgs>(dtype, options.eps, options.has_dweight);
  args.zero_centered = options.zero_centered;
  return args;
}

NormGradients composed_gradients(const Tensor& dy_in, const Tensor& x_in, const Tensor& weight, double eps,
                                 bool zero_centered, bool wants_dweight) {
  const Tensor x = in_double(x_in), dy = in_double(dy_in);
  const Tensor r = elementwise(ElementwiseOp::kRsqrt, mean(x * x, {-1}, true) + eps);
  const Tensor n = x * r;
  Tensor dn = dy;
  if (weight.defined()) dn = dy * (zero_centered ? in_double(weight) + 1.0 : in_double(weight));
  NormGradients gradients{cast(r * (dn - n * mean(dn * n, {-1}, true)), x_in.dtype()), {}, {}};
  if (wants_dweight) gradients.dweight = cast(sum_to(dy * n, weight.shape()), weight.dtype());
  return gradients;
}

void run(const Call<Options>& call) {
  const NormOperands operands(call.inputs);
  RmsNormBackwardArgs args = args_of(operands, call.inputs[1].dtype(), call.options);
  args.dx = call.outputs[0].data();
  if (args.has_dweight) args.dweight = call.outputs[1].data();
  run_rung(kernels::rms_norm_backward_ladder, call, args);
}

const Op<Options> kOp("rms_norm_backward", run);

NormGradients fused_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, const Options& options,
                              std::string_view variant, int rung) {
  const NormGradients gradients = empty_norm_gradients(x, options.has_dweight, false);
  const Tensors inputs{dy, x, weight}, outputs = as_outputs(gradients);
  const int64_t flops = kFlops + (weight.defined() ? kWeightFlops + (options.zero_centered ? kOffsetFlops : 0) : 0) +
                        (options.has_dweight ? kDweightFlops : 0);
  int64_t written = 0;
  for (const Tensor& output : outputs) written += output.nbytes();
  const Cost cost{0, flops * x.numel(), compulsory_bytes(inputs), written};
  submit(Call(kOp, inputs, outputs, options, cost, variant, rung));
  return gradients;
}

}  // namespace

NormGradients rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps, bool zero_centered,
                                bool wants_dweight, std::string_view variant) {
  const OpScope scope("rms_norm_backward");
  check_gradient_of_rows("rms_norm_backward", "x", dy, x);
  check_eps("rms_norm_backward", eps);
  if (weight.defined()) check_parameter("rms_norm_backward", "weight", x, weight);
  const Options options{eps, zero_centered, wants_dweight};
  if (x.shape().back() == 0) return fused_gradients(dy, x, weight, options, variant, kUnchosen);  // all is empty
  const auto& ladder = kernels::rms_norm_backward_ladder;
  const auto args = args_of(NormOperands(dy, x, weight), x.dtype(), options);
  const int rung = ladder.choose(x.device(), args, variant, kOp.name);
  if (!ladder.composes(rung)) return fused_gradients(dy, x, weight, options, variant, rung);
  const NormGradients gradients = composed_gradients(dy, x, weight, eps, zero_centered, wants_dweight);
  scope.done();  // its parts have counted their work
  return gradients;
}

}  // namespace rooflab
