// linear, log_softmax and cross_entropy.
#include "autograd/tape.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"

namespace rooflab::nn {
namespace {

using enum ElementwiseOp;

// log(sum(exp(x))) along dim, which stays with size 1.
Tensor log_sum_exp(const Tensor& x, int64_t dim) { return elementwise(kLog, sum(elementwise(kExp, x), {dim}, true)); }

// x - top, in float32 for 16 bits. No other tensor of this size stays in memory: logits are a model's largest tensors.
Tensor shifted(const Tensor& x, const Tensor& top) { return widen(x) - top; }

// The largest element along dim, which stays with size 1.
Tensor largest(const Tensor& x, int64_t dim) { return widen(amax(x, {dim}, true)); }

// Which targets count, and the classes they name. Targets that do not count name class 0.
struct Targets {
  Tensor counts, classes;
};
Targets read_targets(const Tensor& target, int64_t ignore_index) {
  const Scalar ignored{static_cast<double>(ignore_index), ignore_index};
  const Tensor counts = elementwise(kNe, target, ignored);
  return {counts, where(counts, target, Scalar{})};
}

// (softmax - one hot) * scale. The softmax is exp(logits - top) / exp(rest), and scale, with size 1 along dim, is the
// gradient of each loss. Computed in float32 for 16 bits.
Tensor logits_gradient(const Tensor& logits, const Tensor& top, const Tensor& rest, const Tensor& classes,
                       const Tensor& scale, int64_t dim) {
  Tensor d = shifted(logits, top);
  d = elementwise(kExp, d);
  d = d * (scale * elementwise(kExp, -rest));
  d = scatter_add(d, dim, classes, -scale);
  return cast(d, logits.dtype());
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  RL_CHECK(weight.ndim() == 2, "linear", "weight: expected (O, I), got ", weight.shape());
  RL_CHECK(x.ndim() >= 1 && x.size(-1) == weight.size(1), "linear", "x: expected (..., I=", weight.size(1),
           ") for a weight of ", weight.shape(), ", got ", x.shape());
  RL_CHECK(!bias || (bias->ndim() == 1 && bias->size(0) == weight.size(0)), "linear",
           "bias: expected (O=", weight.size(0), "), got ", bias->shape());
  const Tensor y = matmul(x, transpose(weight, 0, 1));
  return bias ? y + *bias : y;
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  RL_CHECK(is_floating(x.dtype()), "log_softmax", "x: expected a floating-point dtype, got ", name(x.dtype()));
  const int64_t along = normalize_dim(dim, x.ndim(), "log_softmax");
  Tensor y = [&] {
    const autograd::GradMode off(false);
    if (x.numel() == 0) return copy(x);
    const Tensor below = shifted(x, largest(x, along));
    return cast(below - log_sum_exp(below, along), x.dtype());
  }();
  if (autograd::recording(x))
    autograd::record("log_softmax", y, {x}, autograd::saving(y), [along](const Tensor& dy, const Tensor& y) {
      const Tensor wide = widen(dy);
      Tensor d = elementwise(kExp, widen(y));
      d = d * sum(wide, {along}, true);
      return cast(wide - d, y.dtype());
    });
  return y;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, int64_t ignore_index, Reduction reduction) {
  RL_CHECK(is_floating(logits.dtype()), "cross_entropy", "logits: expected a floating-point dtype, got ",
           name(logits.dtype()));
  RL_CHECK(logits.ndim() >= 1, "cross_entropy", "logits: expected (V,), (N, V) or (N, V, ...), got ()");
  RL_CHECK(target.dtype() == DType::kInt64 || target.dtype() == DType::kInt32, "cross_entropy",
           "target: expected int64 or int32, got ", name(target.dtype()));
  const int64_t dim = logits.ndim() == 1 ? 0 : 1;
  Shape shape = logits.shape();
  shape.erase(static_cast<int>(dim));
  RL_CHECK(target.shape() == shape, "cross_entropy", "target: expected ", shape, " for logits ", logits.shape(),
           ", got ", target.shape());
  RL_CHECK(logits.size(dim) > 0, "cross_entropy", "logits: expected at least one class, got ", logits.shape());

  const bool records = autograd::recording(logits);
  const autograd::GradMode off(false);
  const auto [counts, classes] = read_targets(target.unsqueeze(dim), ignore_index);
  // The maximum is subtracted first: no exponential overflows, and the loss loses no digits to a large maximum.
  const Tensor top = largest(logits, dim), rest = log_sum_exp(shifted(logits, top), dim);
  const Tensor chosen = shifted(gather(logits, dim, classes), top);
  Tensor y = where(counts, rest - chosen, Scalar{}).squeeze(dim), divisor;
  if (reduction != Reduction::kNone) y = sum(y, {}, false);
  if (reduction == Reduction::kMean) y = y / (divisor = cast(sum(counts, {}, false), y.dtype()));
  y = cast(y, logits.dtype());
  if (records)
    autograd::record("cross_entropy", y, {logits}, autograd::saving(logits, top, rest, counts, classes, divisor),
                     [dim, reduction](const Tensor& dy, const Tensor& logits, const Tensor& top, const Tensor& rest,
                                      const Tensor& counts, const Tensor& classes, const Tensor& divisor) {
                       Tensor each = widen(dy);
                       if (divisor.defined()) each = each / divisor;
                       each = reduction == Reduction::kNone ? each.unsqueeze(dim) : each.expand(counts.shape());
                       return logits_gradient(logits, top, rest, classes, where(counts, each, Scalar{}), dim);
                     });
  return y;
}

}  // namespace rooflab::nn
