// cross_entropy_backward: checks and cost; and the version that is composed of other ops.
#include "kernels/cross_entropy/cross_entropy_backward.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/class_rows.h"
#include "ops/cross_entropy.h"
#include "ops/rows.h"
#include "ops/rung.h"

namespace rooflab {
namespace {

using kernels::CrossEntropyBackwardArgs;
using enum ElementwiseOp;

constexpr int64_t kLogitFlops = 3;  // subtract, exp, multiply
constexpr int64_t kRowFlops = 2;    // one hot, division by the count

void run(const Call<CrossEntropyBackwardOptions>& call) {
  const Rows rows = as_rows(with_classes_last(call.inputs[1]));
  const auto dense = [&](int k) { return operand_as(call.inputs[k], contiguous(call.inputs[k].detach())); };
  const Tensor dloss = dense(0), target = dense(2), lse = dense(3);
  const Tensor rest = call.inputs[4].defined() ? dense(4) : Tensor();
  const Tensor& count = call.inputs[5];
  CrossEntropyBackwardArgs args{};
  args.dloss = dloss.data();
  args.dloss_stride = dloss.numel() > 1;
  args.logits = rows.x.data();
  args.classes = as_classes(target, call.options.ignore_index, rows.d);
  args.lse = lse.data();
  args.lse_rest = rest.defined() ? rest.data() : nullptr;
  args.count = count.defined() ? count.data() : nullptr;
  args.dlogits = call.outputs[0].data();
  args.wide_loss = dloss.dtype() == lse.dtype();
  args.n = rows.n;
  args.v = rows.d;
  args.row_stride = rows.stride;
  args.dtype = rows.x.dtype();
  run_rung(kernels::cross_entropy_backward_ladder, call, args);
}

const Op<CrossEntropyBackwardOptions> kOp("cross_entropy_backward", run, kLooks);

// (softmax - one hot) * scale, in float32 for 16 bits; scale is the gradient of each loss.
Tensor composed_gradient(const Tensor& dloss, const Tensor& logits, const Tensor& target, const Tensor& lse,
                         const std::optional<Tensor>& lse_rest, const std::optional<Tensor>& count,
                         int64_t ignore_index) {
  const int64_t dim = class_dim(logits);
  const auto [counts, classes] = counted_targets(logits, target, ignore_index);
  Tensor each = widen(dloss);
  if (count) each = each / *count;
  each = each.ndim() == target.ndim() ? each.unsqueeze(dim) : each.expand(counts.shape());
  const Tensor scale = where(counts, each, Scalar{});
  Tensor d = widen(logits) - lse.unsqueeze(dim);
  if (lse_rest) d = d - lse_rest->unsqueeze(dim);
  d = elementwise(kExp, d);
  d = d * scale;
  d = scatter_add(d, dim, classes, -scale);
  return cast(d, logits.dtype());
}

void check_lse(const char* argument, const Tensor& lse, const Tensor& logits, const Tensor& target) {
  const DType wide = sum_dtype(logits.dtype());
  check_same_device("cross_entropy_backward", logits, lse);
  RL_CHECK(lse.dtype() == wide && lse.shape() == target.shape(), "cross_entropy_backward", argument, ": expected ",
           name(wide), " ", target.shape(), ", got ", name(lse.dtype()), " ", lse.shape());
}

void check_number(const char* argument, const Tensor& x, DType dtype, const Tensor& logits) {
  check_same_device("cross_entropy_backward", logits, x);
  RL_CHECK(x.dtype() == dtype && x.ndim() == 0, "cross_entropy_backward", argument, ": expected ", name(dtype), " ",
           Shape{}, ", got ", name(x.dtype()), " ", x.shape());
}

}  // namespace

Tensor cross_entropy_backward(const Tensor& dloss, const Tensor& logits, const Tensor& target, const Tensor& lse,
                              const std::optional<Tensor>& lse_rest, const std::optional<Tensor>& count,
                              int64_t ignore_index, std::string_view variant, bool in_place) {
  const OpScope scope("cross_entropy_backward");
  check_class_rows("cross_entropy_backward", logits, target);
  check_same_device("cross_entropy_backward", logits, dloss);
  const DType wide = sum_dtype(logits.dtype());
  RL_CHECK(dloss.dtype() == logits.dtype() || dloss.dtype() == wide, "cross_entropy_backward", "dloss: expected ",
           name(wide), logits.dtype() == wide ? "" : message(" or ", name(logits.dtype())), ", got ",
           name(dloss.dtype()));
  RL_CHECK(dloss.ndim() == 0 || dloss.shape() == target.shape(), "cross_entropy_backward",
           "dloss: expected () or the shape of target ", target.shape(), ", got ", dloss.shape());
  check_lse("lse", lse, logits, target);
  if (lse_rest) check_lse("lse_rest", *lse_rest, logits, target);
  if (count) check_number("count", *count, wide, logits);

  const Rows planned = planned_rows(with_classes_last(logits));
  CrossEntropyBackwardArgs args{};
  args.logits = planned.x.data();
  args.dlogits = in_place ? logits.data() : nullptr;
  args.n = planned.n;
  args.v = planned.d;
  args.row_stride = planned.stride;
  args.dtype = logits.dtype();
  const auto& ladder = kernels::cross_entropy_backward_ladder;
  const int rung = ladder.choose(logits.device(), args, variant, kOp.name);
  if (ladder.composes(rung)) {
    const autograd::GradMode off(false);
    const Tensor dlogits = composed_gradient(dloss, logits, target, lse, lse_rest, count, ignore_index);
    scope.done();  // its parts have counted their work
    return dlogits;
  }
  Shape rows = target.shape();
  rows.push_back(logits.size(class_dim(logits)));
  const Tensor dlogits =
      in_place ? logits.detach() : with_classes_second(Tensor::empty(rows, logits.dtype(), logits.device()));
  const Tensors inputs{dloss, logits, target, lse, lse_rest.value_or(Tensor()), count.value_or(Tensor())};
  const Cost cost{0, kLogitFlops * logits.numel() + kRowFlops * target.numel(), compulsory_bytes(inputs),
                  dlogits.nbytes()};
  submit(Call(kOp, inputs, {dlogits}, {ignore_index}, cost, variant, rung));
  return dlogits;
}

}  // namespace rooflab
