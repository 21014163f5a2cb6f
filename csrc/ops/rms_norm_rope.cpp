// rms_norm_rope: checks and cost. If a gradient is wanted it is made of rms_norm and rope, which record
// themselves.
#include "kernels/rms_norm_rope/rms_norm_rope.h"

#include "core/range.h"
#include "ops/autocast.h"
#include "ops/rope_operands.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RmsNormRopeArgs;

constexpr int64_t kFlops = 3 + 1 + 3;  // per element: the norm, the weight, rope

struct Options {
  double eps;
  bool zero_centered;
};

void run(const Call<Options>& call) {
  const RopeOperands operands(call.inputs[0], call.inputs[2], call.inputs[3], call.outputs[0], false);
  const Tensor weight = as_parameter(call.inputs[1]);
  run_rung(kernels::rms_norm_rope_ladder, call,
           RmsNormRopeArgs{operands.args, weight.data(), call.options.eps, call.options.zero_centered});
}

const Op<Options> kOp("rms_norm_rope", run);

}  // namespace

Tensor rms_norm_rope(const Tensor& x, const Tensor& weight, const Tensor& cos, const Tensor& sin, double eps,
                     bool zero_centered, std::string_view variant) {
  if (const auto dtype = autocast::wanted("rms_norm_rope", {&x, &weight, &cos, &sin}))
    return rms_norm_rope(autocast::in(*dtype, x), autocast::in(*dtype, weight), autocast::in(*dtype, cos),
                         autocast::in(*dtype, sin), eps, zero_centered, variant);
  const OpScope scope("rms_norm_rope");
  check_rope("rms_norm_rope", x, cos, sin);
  check_parameter("rms_norm_rope", "weight", x, weight);
  check_eps("rms_norm_rope", eps);
  if (autograd::recording(x, weight, cos, sin)) {
    const Tensor y = rope(rms_norm(x, weight, eps, zero_centered), cos, sin);
    scope.done();
    return y;
  }
  const Tensor y = empty_rope_result(x);
  const Tensors inputs{x, weight, cos, sin};
  const Cost cost{0, (kFlops + zero_centered) * x.numel(), compulsory_bytes(inputs), y.nbytes()};
  submit(Call(kOp, inputs, {y}, {eps, zero_centered}, cost, variant));
  return y;
}

}  // namespace rooflab
