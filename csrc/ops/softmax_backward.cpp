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

struct Options {
  int64_t dim;
};

SoftmaxBackwardArgs args_of(const Rows& dy, const Rows& y, DType dtype, void* dx) {
  return {dy.x.data(), y.x.data(), dx, y.n, y.d, dy.stride, y.stride, dtype};
}

void run(const Call<Options>& call) {
  const int64_t along = call.options.dim;
  const Rows dy = as_rows(call.inputs[0].transpose(along, -1)), y = as_rows(call.inputs[1].transpose(along, -1));
  run_rung(kernels::softmax_backward_ladder, call, args_of(dy, y, y.x.dtype(), call.outputs[0].data()));
}

const Op<Options> kOp("softmax_backward", run);

}  // namespace

Tensor softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant) {
  const OpScope scope("softmax_backward");
  check_gradient_of_rows("softmax_backward", "y", dy, y);
  const int64_t along = normalize_dim(dim, y.ndim(), "softmax_backward");
  int rung = kUnchosen;
  if (y.numel() > 0) {
    const auto& ladder = kernels::softmax_backward_ladder;
    const Rows dy_rows = planned_rows(dy.transpose(along, -1)), y_rows = planned_rows(y.transpose(along, -1));
    rung = ladder.choose(y.device(), args_of(dy_rows, y_rows, y.dtype(), nullptr), variant, kOp.name);
    if (ladder.composes(rung)) {
      const Tensor dx = y * (dy - sum(dy * y, {along}, true));
      scope.done();  // its parts have counted their work
      return dx;
    }
  }
  Shape moved = y.shape();  // in memory the rows of dx are adjacent
  std::swap(moved[along], moved[y.ndim() - 1]);
  const Tensor dx = Tensor::empty(moved, y.dtype(), y.device()).transpose(along, -1);
  const Cost cost{0, kFlops * y.numel(), compulsory_bytes({dy, y}), dx.nbytes()};
  submit(Call(kOp, {dy, y}, {dx}, {along}, cost, variant, rung));
  return dx;
}

}  // namespace rooflab
