// linear and log_softmax.
#include "autograd/tape.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"

namespace rooflab::nn {
namespace {

using enum ElementwiseOp;

// log(sum(exp(x))) along dim, which stays with size 1.
Tensor log_sum_exp(const Tensor& x, int64_t dim) { return elementwise(kLog, sum(elementwise(kExp, x), {dim}, true)); }

// x - top, in float32 for 16 bits.
Tensor shifted(const Tensor& x, const Tensor& top) { return widen(x) - top; }

// The largest element along dim, which stays with size 1.
Tensor largest(const Tensor& x, int64_t dim) { return widen(amax(x, {dim}, true)); }

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  if (const auto dtype = autocast::wanted("linear", {&x, &weight, autocast::operand(bias)}))
    return linear(autocast::in(*dtype, x), autocast::in(*dtype, weight), autocast::in(*dtype, bias));
  RL_CHECK(weight.ndim() == 2, "linear", "weight: expected (O, I), got ", weight.shape());
  RL_CHECK(x.ndim() >= 1 && x.size(-1) == weight.size(1), "linear", "x: expected (..., I=", weight.size(1),
           ") for a weight of ", weight.shape(), ", got ", x.shape());
  RL_CHECK(!bias || (bias->ndim() == 1 && bias->size(0) == weight.size(0)), "linear",
           "bias: expected (O=", weight.size(0), "), got ", bias->shape());
  const Tensor y = matmul(x, transpose(weight, 0, 1));
  return bias ? y + *bias : y;
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  if (const auto dtype = autocast::wanted("log_softmax", {&x})) return log_softmax(autocast::in(*dtype, x), dim);
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

}  // namespace rooflab::nn
