// rms_norm: checks and cost.
#include "kernels/rms_norm/rms_norm.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/ops.h"
#include "ops/row_backward.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RmsNormArgs;

constexpr int64_t kFlops = 3, kWeightFlops = 1, kOffsetFlops = 1;  // per element

struct Options {
  double eps;
  bool zero_centered;
};

void run(const Call<Options>& call) {
  const Rows rows = as_rows(call.inputs[0]);
  const Tensor weight = as_parameter(call.inputs[1]);
  run_rung(kernels::rms_norm_ladder, call,
           RmsNormArgs{rows.x.data(), weight.data(), call.outputs[0].data(), rows.n, rows.d, rows.stride,
                       call.options.eps, call.options.zero_centered, rows.x.dtype()});
}

const Op<Options> kOp("rms_norm", run);

}  // namespace

Tensor rms_norm(const Tensor& x, const std::optional<Tensor>& weight, double eps, bool zero_centered,
                std::string_view variant) {
  if (const auto dtype = autocast::wanted("rms_norm", {&x, autocast::operand(weight)}))
    return rms_norm(autocast::in(*dtype, x), autocast::in(*dtype, weight), eps, zero_centered, variant);
  const OpScope scope("rms_norm");
  check_floating("rms_norm", "x", x);
  RL_CHECK(x.ndim() > 0, "rms_norm", "x: expected (..., D), got ()");
  check_eps("rms_norm", eps);
  check_parameter("rms_norm", "weight", x, weight);
  Tensor y = Tensor::empty(x.shape(), x.dtype(), x.device());
  const Tensors inputs{x, weight.value_or(Tensor())};
  const int64_t flops = kFlops + (weight ? kWeightFlops + (zero_centered ? kOffsetFlops : 0) : 0);
  const Cost cost{0, flops * x.numel(), compulsory_bytes(inputs), y.nbytes()};
  return submit(Call(kOp, inputs, {y}, {eps, zero_centered}, cost, variant), autograd::saving(x, weight),
                [eps, zero_centered](const Gradients& dy, const Tensor& x, const Tensor& weight) -> Tensors {
                  const auto [dx, dweight, _] = rms_norm_backward(dy, x, weight, eps, zero_centered, dy.wanted(1));
                  return {dx, dweight};
                });
}

}  // namespace rooflab
