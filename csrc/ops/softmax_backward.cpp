// softmax_backward: checks and cost; and the rule composed of other ops.
#include "kernels/softmax_backward/softmax_backward.h"

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/ops.h"
#include "ops/row_backward.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::SoftmaxBackwardArgs;

constexpr int64_t kFlops = 4;  // per element

// What is known before the operands are laid out as rows.
SoftmaxBackwardArgs planned_args(const Tensor& y, int64_t along) {
  SoftmaxBackwardArgs args{};
  args.d = y.size(along);
  args.n = args.d == 0 ? 0 : y.numel() / args.d;
  args.dy_row_stride = args.y_row_stride = args.d;
  args.dtype = y.dtype();
  return args;
}

void run(const Call& call) {
  const int64_t along = call.get<int64_t>("dim");
  const Rows dy = as_rows(call.inputs[0].transpose(along, -1)), y = as_rows(call.inputs[1].transpose(along, -1));
  SoftmaxBackwardArgs args = planned_args(call.inputs[1], along);
  args.dy = dy.x.data();
  args.y = y.x.data();
  args.dx = call.outputs[0].data();
  args.dy_row_stride = dy.stride;
  args.y_row_stride = y.stride;
  run_rung(kernels::softmax_backward_ladder, call, args);
}

const Op kOp("softmax_backward", run);

}  // namespace

Tensor softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant) {
  const OpScope scope("softmax_backward");
  check_gradient_of_rows("softmax_backward", "y", dy, y);
  const int64_t along = normalize_dim(dim, y.ndim(), "softmax_backward");
  if (y.numel() > 0 && kernels::softmax_backward_ladder.composes(y.device(), planned_args(y, along), variant)) {
    const Tensor dx = y * (dy - sum(dy * y, {along}, true));
    scope.done();  // its parts have counted their work
    return dx;
  }
  Shape moved = y.shape();  // in memory the rows of dx are adjacent
  std::swap(moved[along], moved[y.ndim() - 1]);
  const Tensor dx = Tensor::empty(moved, y.dtype(), y.device()).transpose(along, -1);
  const Cost cost{0, kFlops * y.numel(), compulsory_bytes({dy, y}), dx.nbytes()};
  submit({&kOp, {dy, y}, {dx}, {{"dim", along}}, cost, std::string(variant)});
  return dx;
}

}  // namespace rooflab
