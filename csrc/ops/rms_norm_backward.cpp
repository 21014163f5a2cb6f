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

RmsNormBackwardArgs planned_args(const Tensor& x, double eps, bool zero_centered, bool has_dweight) {
  auto args = planned_norm_args<RmsNormBackwardArgs>(x, eps, has_dweight);
  args.zero_centered = zero_centered;
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

void run(const Call& call) {
  const NormOperands operands(call);
  const bool has_dweight = call.outputs.size() > 1;
  RmsNormBackwardArgs args =
      planned_args(call.inputs[1], call.get<double>("eps"), call.get<bool>("zero_centered"), has_dweight);
  operands.put_into(args);
  args.dx = call.outputs[0].data();
  if (has_dweight) args.dweight = call.outputs[1].data();
  run_rung(kernels::rms_norm_backward_ladder, call, args);
}

const Op kOp("rms_norm_backward", run);

NormGradients fused_gradients(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps, bool zero_centered,
                              bool wants_dweight, std::string_view variant) {
  const NormGradients gradients = empty_norm_gradients(x, wants_dweight, false);
  const Tensors inputs{dy, x, weight}, outputs = as_outputs(gradients);
  const int64_t flops = kFlops + (weight.defined() ? kWeightFlops + (zero_centered ? kOffsetFlops : 0) : 0) +
                        (wants_dweight ? kDweightFlops : 0);
  int64_t written = 0;
  for (const Tensor& output : outputs) written += output.nbytes();
  submit({&kOp,
          inputs,
          outputs,
          {{"eps", eps}, {"zero_centered", zero_centered}},
          {0, flops * x.numel(), compulsory_bytes(inputs), written},
          std::string(variant)});
  return gradients;
}

}  // namespace

NormGradients rms_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps, bool zero_centered,
                                bool wants_dweight, std::string_view variant) {
  const OpScope scope("rms_norm_backward");
  check_gradient_of_rows("rms_norm_backward", "x", dy, x);
  check_eps("rms_norm_backward", eps);
  if (weight.defined()) check_parameter("rms_norm_backward", "weight", x, weight);
  const bool is_empty = x.shape().back() == 0;  // and so are all results
  if (is_empty || !kernels::rms_norm_backward_ladder.composes(
                      x.device(), planned_args(x, eps, zero_centered, wants_dweight), variant))
    return fused_gradients(dy, x, weight, eps, zero_centered, wants_dweight, variant);
  const NormGradients gradients = composed_gradients(dy, x, weight, eps, zero_centered, wants_dweight);
  scope.done();  // its parts have counted their work
  return gradients;
}

}  // namespace rooflab
