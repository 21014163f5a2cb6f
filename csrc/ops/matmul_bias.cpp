// matmul_bias: checks and cost; and the version that is composed of other ops.
#include "kernels/matmul_bias/matmul_bias.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "kernels/common/alignment.h"
#include "ops/arithmetic.h"
#include "ops/matmul_bias.h"
#include "ops/matrix_operands.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::MatmulBiasArgs;

// All but where the result lies.
MatmulBiasArgs planned_args(const Tensor& a, const Tensor& b, const Tensor& bias) {
  MatmulBiasArgs args{matrix_operands(a, b), bias.is_contiguous() ? bias.data() : nullptr};
  args.product.splits_float32 = float32_matmul_precision() != "highest";
  return args;
}

// A recorded call may get another bias than it was planned for, at any address.
Tensor aligned(const Tensor& bias) {
  const bool as_planned = bias.is_contiguous() && kernels::is_aligned(bias.data());
  return as_planned ? bias : operand_as(bias, copy(bias.detach()));
}

void run(const Call<NoOptions>& call) {
  const Tensor bias = aligned(call.inputs[2]);
  MatmulBiasArgs args = planned_args(call.inputs[0], call.inputs[1], bias);
  args.product.c = call.outputs[0].data();
  run_rung(kernels::matmul_bias_ladder, call, args);
}

const Op<NoOptions> kOp("matmul_bias", run);

int choose(const Tensor& a, const Tensor& b, const Tensor& bias, std::string_view variant) {
  return kernels::matmul_bias_ladder.choose(a.device(), planned_args(a, b, bias), variant, kOp.name);
}

}  // namespace

bool has_bias_epilogue(const Tensor& a, const Tensor& b, const Tensor& bias) {
  return !kernels::matmul_bias_ladder.composes(choose(a, b, bias, {}));
}

Tensor matmul_bias(const Tensor& a, const Tensor& b, const Tensor& bias, std::string_view variant) {
  const OpScope scope("matmul_bias");
  check_same_device("matmul_bias", a, b);
  check_same_device("matmul_bias", a, bias);
  check_same_dtype("matmul_bias", a, b);
  check_same_dtype("matmul_bias", a, bias);
  check_floating("matmul_bias", "a", a);
  RL_CHECK(a.ndim() == 2 && b.ndim() == 2 && a.size(1) == b.size(0), "matmul_bias", "expected (M, K) and (K, N), got ",
           a.shape(), " and ", b.shape());
  RL_CHECK(bias.ndim() == 1 && bias.size(0) == b.size(1), "matmul_bias", "bias: expected (N=", b.size(1), "), got ",
           bias.shape());
  const autograd::GradMode off(false);
  const int rung = choose(a, b, bias, variant);
  if (kernels::matmul_bias_ladder.composes(rung)) {
    const Tensor c = matmul(a, b) + bias;
    scope.done();  // its parts have counted their work
    return c;
  }
  const Tensor c = Tensor::empty({a.size(0), b.size(1)}, a.dtype(), a.device());
  const int64_t macs = flops_of("matmul_bias", {2, a.size(0), b.size(1), a.size(1)}, a.shape(), b.shape()) / 2;
  const Cost cost{macs, 2 * macs + c.numel(), compulsory_bytes({a, b, bias}), c.nbytes()};
  // By name, so that a recorded call stays one launch.
  submit(Call(kOp, {a, b, bias}, {c}, {}, cost, kernels::matmul_bias_ladder.rung(rung).name, rung));
  return c;
}

}  // namespace rooflab
