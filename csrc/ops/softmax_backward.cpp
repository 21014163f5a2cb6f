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
  bool logarithm;
};

SoftmaxBackwardArgs args_of(const Rows& dy, const Rows& y, DType dtype, void* dx, bool logarithm) {
  return {dy.x.data(), y.x.data(), dx, y.n, y.d, dy.stride, y.stride, dtype, logarithm};
}

void run(const Call<Options>& call) {
  const auto [dim, logarithm] = call.options;
  const Rows dy = as_rows(call.inputs[0].transpose(dim, -1)), y = as_rows(call.inputs[1].transpose(dim, -1));
  run_rung(kernels::softmax_backward_ladder, call, args_of(dy, y, y.x.dtype(), call.outputs[0].data(), logarithm));
}

const Op<Options> kOp("softmax_backward", run), kLogOp("log_softmax_backward", run);

Tensor composed(const Tensor& dy_in, const Tensor& y_in, int64_t dim, bool logarithm) {
  const Tensor dy = widen(dy_in), y = widen(y_in);
  const Tensor dx =
      logarithm ? dy - elementwise(ElementwiseOp::kExp, y) * sum(dy, {dim}, true) : y * (dy - sum(dy * y, {dim}, true));
  return cast(dx, y_in.dtype());
}

Tensor submitted(const Op<Options>& op, const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant) {
  const OpScope scope(op.name);
  check_gradient_of_rows(op.name, "y", dy, y);
  const int64_t along = normalize_dim(dim, y.ndim(), op.name);
  const bool logarithm = &op == &kLogOp;
  int rung = kUnchosen;
  if (y.numel() > 0) {
    const auto& ladder = kernels::softmax_backward_ladder;
    const Rows dy_rows = planned_rows(dy.transpose(along, -1)), y_rows = planned_rows(y.transpose(along, -1));
    rung = ladder.choose(y.device(), args_of(dy_rows, y_rows, y.dtype(), nullptr, logarithm), variant, op.name);
    if (ladder.composes(rung)) {
      const Tensor dx = composed(dy, y, along, logarithm);
      scope.done();  // its parts have counted their work
      return dx;
    }
  }
  Shape moved = y.shape();  // in memory the rows of dx are adjacent
  std::swap(moved[along], moved[y.ndim() - 1]);
  const Tensor dx = Tensor::empty(moved, y.dtype(), y.device()).transpose(along, -1);
  const Cost cost{0, kFlops * y.numel(), compulsory_bytes({dy, y}), dx.nbytes()};
  submit(Call(op, {dy, y}, {dx}, {along, logarithm}, cost, variant, rung));
  return dx;
}

}  // namespace

Tensor softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant) {
  return submitted(kOp, dy, y, dim, variant);
}

Tensor log_softmax_backward(const Tensor& dy, const Tensor& y, int64_t dim, std::string_view variant) {
  return submitted(kLogOp, dy, y, dim, variant);
}

}  // namespace rooflab
