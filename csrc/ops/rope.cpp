// rope: checks, cost and backward rule.
#include "kernels/rope/rope.h"

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/rope_operands.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::RopeArgs;

constexpr int64_t kFlops = 3;  // per element

struct Options {
  bool is_reverse;  // the transposed rotation, which the gradient needs
};

void run(const Call<Options>& call) {
  const RopeOperands operands(call.inputs[0], call.inputs[1], call.inputs[2], call.outputs[0], call.options.is_reverse);
  run_rung(kernels::rope_ladder, call, operands.args);
}

const Op<Options> kOp("rope", run);

// What the sines multiply: the negated second half, then the first half.
Tensor half_turned(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return cat({-x.slice(-1, half, 2 * half, 1), x.slice(-1, 0, half, 1)}, -1);
}

// All heads share a table, and so does the whole batch if the table has no B.
Tensor table_gradient(const Tensor& dy, const Tensor& factor, const Tensor& table) {
  Shape shape = table.shape();
  if (table.ndim() == 3) shape = {table.size(0), 1, table.size(1), table.size(2)};
  return cast(reshape(sum_to(widen(dy) * widen(factor), shape), table.shape()), table.dtype());
}

Call<Options> plan(const Tensor& x, const Tensor& cos, const Tensor& sin, bool is_reverse, std::string_view variant) {
  const Tensor y = empty_rope_result(x);
  const Cost cost{0, kFlops * x.numel(), compulsory_bytes({x, cos, sin}), y.nbytes()};
  return {kOp, {x, cos, sin}, {y}, {is_reverse}, cost, variant};
}

Tensors gradients(const Gradients& dy, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  Tensors gradients(3);
  if (dy.wanted(0)) {
    const OpScope scope("rope");
    const Call call = plan(dy, cos, sin, true, {});
    submit(call);
    gradients[0] = call.outputs[0];
  }
  if (dy.wanted(1)) gradients[1] = table_gradient(dy, x, cos);
  if (dy.wanted(2)) gradients[2] = table_gradient(dy, half_turned(x), sin);
  return gradients;
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, std::string_view variant) {
  if (const auto dtype = autocast::wanted("rope", {&x, &cos, &sin}))
    return rope(autocast::in(*dtype, x), autocast::in(*dtype, cos), autocast::in(*dtype, sin), variant);
  const OpScope scope("rope");
  check_rope("rope", x, cos, sin);
  const bool learns_angles = autograd::recording(cos, sin);
  return submit(plan(x, cos, sin, false, variant), autograd::saving(autograd::only_if(learns_angles, x), cos, sin),
                gradients);
}

}  // namespace rooflab
