// softmax: checks and cost.
#include "kernels/softmax/softmax.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/row_backward.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::SoftmaxArgs;

constexpr int64_t kFlops = 5;  // per element

struct Options {
  int64_t dim;
  bool logarithm;
  bool by_columns;  // y lies in memory as x does; otherwise its rows are adjacent
};

SoftmaxArgs args_of(const Rows& rows, DType dtype, bool logarithm) {
  return {rows.x.data(), nullptr, rows.n, rows.d, rows.stride, dtype, logarithm};
}

void set_columns(SoftmaxArgs& args, const Tensor& columns) {
  args.columns = columns.data();
  args.inner = columns.size(2);
  args.outer_stride = columns.stride(0);
  args.step = columns.stride(1);
}

void run(const Call<Options>& call) {
  const auto [dim, logarithm, by_columns] = call.options;
  const Tensor& x = call.inputs[0];
  const Rows rows = by_columns ? planned_rows(x.transpose(dim, -1)) : as_rows(x.transpose(dim, -1));
  SoftmaxArgs args = args_of(rows, x.dtype(), logarithm);
  const Tensor columns = by_columns ? along_axis(x, dim) : Tensor();
  args.y_has_columns = by_columns;
  if (by_columns) set_columns(args, columns);
  args.y = call.outputs[0].data();
  run_rung(kernels::softmax_ladder, call, args);
}

const Op<Options> kOp("softmax", run), kLogOp("log_softmax", run);

Call<Options> plan(const Op<Options>& op, const Tensor& x, int64_t dim, std::string_view variant) {
  check_floating(op.name, "x", x);
  const int64_t along = normalize_dim(dim, x.ndim(), op.name);
  const bool logarithm = &op == &kLogOp;
  int rung = kUnchosen;
  bool by_columns = false;
  if (x.numel() > 0) {
    SoftmaxArgs args = args_of(planned_rows(x.transpose(along, -1)), x.dtype(), logarithm);
    if (const auto columns = as_columns(x, along)) set_columns(args, *columns);
    rung = kernels::softmax_ladder.choose(x.device(), args, variant, op.name);
    by_columns = args.inner > 0 && kernels::softmax_takes_columns(kernels::softmax_ladder.rung(rung).name);
  }
  Shape shape = x.shape();
  if (!by_columns) std::swap(shape[along], shape[x.ndim() - 1]);
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  if (!by_columns) y = y.transpose(along, -1);
  const Cost cost{0, kFlops * x.numel(), compulsory_bytes({x}), y.nbytes()};
  return {op, {x}, {y}, {along, logarithm, by_columns}, cost, variant, rung};
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("softmax", {&x})) return softmax(autocast::in(*dtype, x), dim, variant);
  const OpScope scope("softmax");
  Call call = plan(kOp, x, dim, variant);
  const Tensor y = call.outputs[0];
  const int64_t along = call.options.dim;
  return submit(std::move(call), autograd::saving(y),
                [along](const Tensor& dy, const Tensor& y) { return softmax_backward(dy, y, along); });
}

Tensor log_softmax(const Tensor& x, int64_t dim, std::string_view variant) {
  if (const auto dtype = autocast::wanted("log_softmax", {&x}))
    return log_softmax(autocast::in(*dtype, x), dim, variant);
  const OpScope scope("log_softmax");
  Call call = plan(kLogOp, x, dim, variant);
  const Tensor y = call.outputs[0];
  const int64_t along = call.options.dim;
  return submit(std::move(call), autograd::saving(y),
                [along](const Tensor& dy, const Tensor& y) { return log_softmax_backward(dy, y, along); });
}

}  // namespace rooflab
