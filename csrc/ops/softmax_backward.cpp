// softmax_backward: checks and cost; and the rule composed of other ops.
#include "kernels/softmax_backward/softmax_backward.h"

#include "core/range.h"
#include "ops/arithmetic.h"
#include "ops/axis.h"
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
  bool by_columns;  // dx lies in memory as y does; otherwise its rows are adjacent
};

SoftmaxBackwardArgs args_of(const Rows& dy, const Rows& y, DType dtype, bool logarithm) {
  return {dy.x.data(), y.x.data(), nullptr, y.n, y.d, dy.stride, y.stride, dtype, logarithm};
}

Tensor columns_of(const Tensor& x, int64_t dim) {
  if (const auto columns = as_columns(x, dim)) return *columns;
  return operand_as(x, copy(x.detach()).view(axis_sizes(x, dim)));
}

void run(const Call<Options>& call) {
  const int64_t dim = call.options.dim;
  const bool by_columns = call.options.by_columns;
  const Tensor &dy = call.inputs[0], &y = call.inputs[1];
  const auto rows_of = [&](const Tensor& x) {
    return by_columns ? planned_rows(x.transpose(dim, -1)) : as_rows(x.transpose(dim, -1));
  };
  const Rows dy_rows = rows_of(dy), y_rows = rows_of(y);
  SoftmaxBackwardArgs args = args_of(dy_rows, y_rows, y.dtype(), call.options.logarithm);
  const Tensor slopes = by_columns ? columns_of(dy, dim) : Tensor(),
               values = by_columns ? columns_of(y, dim) : Tensor();
  if (by_columns) {
    args.dy = slopes.data();
    args.y = values.data();
    args.inner = values.size(2);
    args.dy_outer_stride = slopes.stride(0);
    args.dy_step = slopes.stride(1);
    args.y_outer_stride = values.stride(0);
    args.y_step = values.stride(1);
  }
  args.dx = call.outputs[0].data();
  run_rung(kernels::softmax_backward_ladder, call, args);
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
  bool by_columns = false;
  if (y.numel() > 0) {
    const auto& ladder = kernels::softmax_backward_ladder;
    const Rows dy_rows = planned_rows(dy.transpose(along, -1)), y_rows = planned_rows(y.transpose(along, -1));
    SoftmaxBackwardArgs args = args_of(dy_rows, y_rows, y.dtype(), logarithm);
    if (const auto columns = as_columns(y, along)) args.inner = columns->size(2);
    rung = ladder.choose(y.device(), args, variant, op.name);
    by_columns = std::string_view(ladder.rung(rung).name) == kernels::kSoftmaxBackwardColumns;
    if (ladder.composes(rung)) {
      const Tensor dx = composed(dy, y, along, logarithm);
      scope.done();  // its parts have counted their work
      return dx;
    }
  }
  Shape shape = y.shape();
  if (!by_columns) std::swap(shape[along], shape[y.ndim() - 1]);
  Tensor dx = Tensor::empty(shape, y.dtype(), y.device());
  if (!by_columns) dx = dx.transpose(along, -1);
  const Cost cost{0, kFlops * y.numel(), compulsory_bytes({dy, y}), dx.nbytes()};
  submit(Call(op, {dy, y}, {dx}, {along, logarithm, by_columns}, cost, variant, rung));
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
