// cross_entropy: checks and cost; and the version that is composed of other ops.
#include "kernels/cross_entropy/cross_entropy.h"

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/class_rows.h"
#include "ops/cross_entropy.h"
#include "ops/graph.h"
#include "ops/rows.h"
#include "ops/rung.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using kernels::CrossEntropyArgs;
using enum ElementwiseOp;

constexpr int64_t kLogitFlops = 4;  // maximum, subtract, exp, add
constexpr int64_t kRowFlops = 3;    // log, two subtractions

struct Losses {
  Tensor loss, lse, lse_rest, count;  // count: only for a mean
};

struct Options {
  int64_t ignore_index;
  bool reduces;
};

void run(const Call<Options>& call) {
  const Rows rows = as_rows(with_classes_last(call.inputs[0]));
  const Tensor target = operand_as(call.inputs[1], contiguous(call.inputs[1].detach()));
  CrossEntropyArgs args{};
  args.logits = rows.x.data();
  args.classes = as_classes(target, call.options.ignore_index, rows.d);
  args.loss = call.outputs[0].data();
  args.lse = call.outputs[1].data();
  args.count = call.outputs.size() > 2 ? call.outputs[2].data() : nullptr;
  args.reduces = call.options.reduces;
  args.wide_loss = call.outputs[0].dtype() == call.outputs[1].dtype();
  args.n = rows.n;
  args.v = rows.d;
  args.row_stride = rows.stride;
  args.dtype = rows.x.dtype();
  run_rung(kernels::cross_entropy_ladder, call, args);
}

const Op<Options> kOp("cross_entropy", run, kLooks);

Losses fused_losses(const Tensor& logits, const Tensor& target, int64_t ignore_index, Reduction reduction,
                    DType loss_dtype, std::string_view variant, int rung) {
  const bool reduces = reduction != Reduction::kNone;
  const DType wide = sum_dtype(logits.dtype());
  Losses made;
  made.loss = Tensor::empty(reduces ? Shape{} : target.shape(), loss_dtype, logits.device());
  Shape two = target.shape();
  two.insert(0, 2);
  const Tensor lse = Tensor::empty(two, wide, logits.device());
  made.lse = lse.select(0, 0);
  made.lse_rest = lse.select(0, 1);
  Tensors outputs{made.loss, lse};
  if (reduction == Reduction::kMean) {
    made.count = Tensor::empty({}, wide, logits.device());
    outputs.push_back(made.count);
  }
  Cost cost{0, kLogitFlops * logits.numel() + (kRowFlops + reduces) * target.numel(),
            compulsory_bytes({logits, target}), 0};
  for (const Tensor& output : outputs) cost.bytes_written += output.nbytes();
  submit(Call(kOp, {logits, target}, outputs, {ignore_index, reduces}, cost, variant, rung));
  return made;
}

Losses composed_losses(const Tensor& logits, const Tensor& target, int64_t ignore_index, Reduction reduction,
                       DType loss_dtype) {
  const int64_t dim = class_dim(logits);
  const auto [counts, classes] = counted_targets(logits, target, ignore_index);
  // The maximum is subtracted first: no exponential overflows, and the loss loses no digits to a large maximum.
  const Tensor top = widen(amax(logits, {dim}, true));
  const Tensor rest = elementwise(kLog, sum(elementwise(kExp, widen(logits) - top), {dim}, true));
  const Tensor chosen = widen(gather(logits, dim, classes)) - top;
  const Tensor lse = top + rest, lse_rest = (top - lse) + rest;
  Losses made{where(counts, rest - chosen, Scalar{}).squeeze(dim), lse.squeeze(dim), lse_rest.squeeze(dim), Tensor()};
  if (reduction != Reduction::kNone) made.loss = sum(made.loss, {}, false);
  if (reduction == Reduction::kMean) {
    made.count = cast(sum(counts, {}, false), made.loss.dtype());
    made.loss = made.loss / made.count;
  }
  made.loss = cast(made.loss, loss_dtype);
  return made;
}

}  // namespace

bool gradient_may_take(const Tensor& logits, int holders) {
  const bool is_foreign = logits.storage()->bytes() < logits.nbytes();  // memory that another library reads
  if (logits.storage().use_count() > holders || is_foreign || !with_classes_last(logits).is_contiguous() ||
      Trace::current())
    return false;
  const Graph* graph = Graph::capturing();
  return !graph || graph->made(logits);
}

Tensor with_classes_last(const Tensor& logits) {
  Shape order;
  for (int d = 0; d < logits.ndim(); ++d)
    if (d != class_dim(logits)) order.push_back(d);
  order.push_back(class_dim(logits));
  return logits.permute(order);
}

Tensor with_classes_second(const Tensor& rows) {
  Shape order;
  for (int d = 0; d + 1 < rows.ndim(); ++d) order.push_back(d);
  order.insert(class_dim(rows), rows.ndim() - 1);
  return rows.permute(order);
}

void check_class_rows(const char* op, const Tensor& logits, const Tensor& target) {
  check_floating(op, "logits", logits);
  RL_CHECK(logits.ndim() >= 1, op, "logits: expected (V,), (N, V) or (N, V, ...), got ()");
  RL_CHECK(target.dtype() == DType::kInt64 || target.dtype() == DType::kInt32, op,
           "target: expected int64 or int32, got ", name(target.dtype()));
  check_same_device(op, logits, target);
  const int dim = class_dim(logits);
  Shape shape = logits.shape();
  shape.erase(dim);
  RL_CHECK(target.shape() == shape, op, "target: expected ", shape, " for logits ", logits.shape(), ", got ",
           target.shape());
  RL_CHECK(logits.size(dim) > 0, op, "logits: expected at least one class, got ", logits.shape());
}

CountedTargets counted_targets(const Tensor& logits, const Tensor& target, int64_t ignore_index) {
  const Tensor each = target.unsqueeze(class_dim(logits));
  const Tensor counts = elementwise(kNe, each, Scalar{static_cast<double>(ignore_index), ignore_index});
  return {counts, where(counts, each, Scalar{})};
}

kernels::Classes as_classes(const Tensor& target, int64_t ignore_index, int64_t limit) {
  return {target.data(), target.dtype(), ignore_index, limit, report_of(target.device())};
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index, Reduction reduction,
                     std::string_view variant) {
  // It computes in float32 anyway, so logits of 16 bits are read as they are.
  const DType loss_dtype = autocast::wanted("cross_entropy", {&logits}).value_or(logits.dtype());
  const OpScope scope("cross_entropy");
  check_class_rows("cross_entropy", logits, target);
  CrossEntropyArgs args{};
  args.n = target.numel();
  args.v = logits.size(class_dim(logits));
  args.dtype = logits.dtype();
  const auto& ladder = kernels::cross_entropy_ladder;
  const int rung = ladder.choose(logits.device(), args, variant, kOp.name);
  const bool composes = ladder.composes(rung), records = autograd::recording(logits);
  auto [loss, lse, lse_rest, count] = [&] {
    const autograd::GradMode off(false);
    return composes ? composed_losses(logits, target, ignore_index, reduction, loss_dtype)
                    : fused_losses(logits, target, ignore_index, reduction, loss_dtype, variant, rung);
  }();
  if (composes) scope.done();  // its parts have counted their work
  if (records)
    autograd::record("cross_entropy", loss, {logits, target}, autograd::saving(logits, target, lse, lse_rest, count),
                     [ignore_index, variant = std::string(composes ? "v0_composed" : "")](
                         const Gradients& d, const Tensor& logits, const Tensor& target, const Tensor& lse,
                         const Tensor& lse_rest, const Tensor& count) -> Tensors {
                       const std::optional<Tensor> divisor = count.defined() ? std::optional(count) : std::nullopt;
                       return {cross_entropy_backward(d, logits, target, lse, lse_rest, divisor, ignore_index, variant,
                                                      gradient_may_take(logits, 1)),
                               Tensor()};
                     });
  return loss;
}

}  // namespace rooflab
