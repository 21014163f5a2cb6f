// softmax: checks and cost.
#include "kernels/softmax/softmax.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/autocast.h"
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
};

void run(const Call<Options>& call) {
  const auto [dim, logarithm] = call.options;
  const Rows rows = as_rows(call.inputs[0].transpose(dim, -1));
  run_rung(kernels::softmax_ladder, call,
           SoftmaxArgs{rows.x.data(), call.outputs[0].data(), rows.n, rows.d, rows.stride, rows.x.dtype(), logarithm});
}

const Op<Options> kOp("softmax", run), kLogOp("log_softmax", run);

Call<Options> plan(const Op<Options>& op, const Tensor& x, int64_t dim, std::string_view variant) {
  check_floating(op.name, "x", x);
  const int64_t along = normalize_dim(dim, x.ndim(), op.name);
  Shape moved = x.shape();  // in memory the rows of y are adjacent
  std::swap(moved[along], moved[x.ndim() - 1]);
  Tensor y = Tensor::empty(moved, x.dtype(), x.device()).transpose(along, -1);
  const Cost cost{0, kFlops * x.numel(), compulsory_bytes({x}), y.nbytes()};
  return {op, {x}, {y}, {along, &op == &kLogOp}, cost, variant};
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
