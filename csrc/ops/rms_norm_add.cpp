// rms_norm_add: checks and cost. If a gradient is wanted it is made of rms_norm and add, which record
// themselves.
#include "kernels/rms_norm_add/rms_norm_add.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RmsNormAddArgs;

constexpr int64_t kNormFlops = 3, kWeightFlops = 1;  // per element

struct Options {
  double eps;
  bool zero_centered;
};

void run(const Call<Options>& call) {
  const Rows x = as_rows(call.inputs[0]), residual = as_rows(call.inputs[1]);
  const Tensor weight = as_parameter(call.inputs[2]), next = as_parameter(call.inputs[3]);
  void* y = call.outputs.size() > 1 ? call.outputs[1].data() : nullptr;
  run_rung(kernels::rms_norm_add_ladder, call,
           RmsNormAddArgs{x.x.data(), residual.x.data(), weight.data(), next.data(), call.outputs[0].data(), y, x.n,
                          x.d, x.stride, residual.stride, call.options.eps, call.options.zero_centered, x.x.dtype()});
}

const Op<Options> kOp("rms_norm_add", run);

}  // namespace

RmsNormAddResult rms_norm_add(const Tensor& x, const Tensor& residual, const Tensor& weight,
                              const std::optional<Tensor>& next_weight, double eps, bool zero_centered,
                              std::string_view variant) {
  if (const auto dtype = autocast::wanted("rms_norm_add", {&x, &residual, &weight, autocast::operand(next_weight)}))
    return rms_norm_add(autocast::in(*dtype, x), autocast::in(*dtype, residual), autocast::in(*dtype, weight),
                        autocast::in(*dtype, next_weight), eps, zero_centered, variant);
  const OpScope scope("rms_norm_add");
  check_floating("rms_norm_add", "x", x);
  RL_CHECK(x.ndim() > 0, "rms_norm_add", "x: expected (..., D), got ()");
  check_eps("rms_norm_add", eps);
  check_same_device("rms_norm_add", x, residual);
  check_same_dtype("rms_norm_add", x, residual);
  RL_CHECK(residual.shape() == x.shape(), "rms_norm_add", "residual: expected the shape of x ", x.shape(), ", got ",
           residual.shape());
  check_parameter("rms_norm_add", "weight", x, weight);
  check_parameter("rms_norm_add", "next_weight", x, next_weight);
  if (autograd::recording(x, residual, weight, next_weight)) {
    RmsNormAddResult result{residual + rms_norm(x, weight, eps, zero_centered), std::nullopt};
    if (next_weight) result.y = rms_norm(result.h, next_weight, eps, zero_centered);
    scope.done();
    return result;
  }
  Tensors outputs{Tensor::empty(x.shape(), x.dtype(), x.device())};
  if (next_weight) outputs.push_back(Tensor::empty(x.shape(), x.dtype(), x.device()));
  const Tensors inputs{x, residual, weight, next_weight.value_or(Tensor())};
  const int64_t norms = next_weight ? 2 : 1, flops = norms * (kNormFlops + kWeightFlops + zero_centered) + 1;
  const Cost cost{0, flops * x.numel(), compulsory_bytes(inputs), norms * x.nbytes()};
  submit(Call(kOp, inputs, outputs, {eps, zero_centered}, cost, variant));
  return {outputs[0], next_weight ? std::optional(outputs[1]) : std::nullopt};
}

}  // namespace rooflab
