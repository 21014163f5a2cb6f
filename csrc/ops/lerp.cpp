// lerp: the member of the elementwise family with three operands that are numbers, and its backward rule.
#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/arithmetic.h"
#include "ops/autocast.h"
#include "ops/elementwise_gradients.h"
#include "ops/promotion.h"

namespace rooflab {
namespace {

using autograd::only_if;
using autograd::requires_grad;

// The shape and the dtype of an operand, which its gradient has too.
struct Like {
  Shape shape;
  DType dtype;

  Tensor of(const Tensor& gradient) const { return cast(sum_to(gradient, shape), dtype); }
};
Like like(const Tensor& x) { return x.defined() ? Like{x.shape(), x.dtype()} : Like{{}, DType::kFloat32}; }

// The weight is a tensor, or the number if that is not defined.
void record_lerp(Tensor& y, const Tensor& start, const Tensor& end, const Tensor& weight, Scalar number) {
  const bool keeps_ends = weight.defined() && requires_grad(weight);
  if (!autograd::is_enabled() || !(requires_grad(start) || requires_grad(end) || keeps_ends)) return;
  autograd::record(
      "lerp", y, {start, end, weight}, autograd::saving(only_if(keeps_ends, start), only_if(keeps_ends, end), weight),
      [number, of_start = like(start), of_end = like(end), of_weight = like(weight)](
          const Gradients& d, const Tensor& start, const Tensor& end, const Tensor& weight) -> Tensors {
        const Tensor& dy = d;
        const auto share = [&] {
          return weight.defined() ? dy * weight : elementwise(ElementwiseOp::kMul, dy, number);
        };
        return {d.wanted(0) ? of_start.of(dy - share()) : Tensor(), d.wanted(1) ? of_end.of(share()) : Tensor(),
                d.wanted(2) ? of_weight.of(dy * (end - start)) : Tensor()};
      });
}

Tensor interpolated(const Tensor& start, const Tensor& end, const Tensor& weight, Scalar number,
                    std::string_view variant) {
  const OpScope scope("lerp");
  check_same_device("lerp", start, end);
  RL_CHECK(common_dtype({start, end}) != DType::kBool, "lerp", "x, end: expected numbers, got bool");
  Shape shape = broadcast_shapes("lerp", start.shape(), end.shape());
  if (weight.defined()) {
    check_same_device("lerp", start, weight);
    RL_CHECK(weight.dtype() != DType::kBool, "lerp", "weight: expected numbers, got bool");
    shape = broadcast_shapes("lerp", shape, weight.shape());
  }
  const Operand by = weight.defined() ? Operand(weight) : Operand(number);
  const DType common = common_dtype({start, end, by}), dtype = is_floating(common) ? common : DType::kFloat32;
  Tensor y = empty_beside({start, end, by}, shape, dtype, start.device());
  submit_into(ElementwiseOp::kLerp, {start, end, by}, dtype, y, variant);
  record_lerp(y, start, end, weight, number);
  return y;
}

}  // namespace

Tensor lerp(const Tensor& start, const Tensor& end, const Tensor& weight, std::string_view variant) {
  if (const auto dtype = autocast::wanted("lerp", {&start, &end, &weight}))
    return lerp(autocast::in(*dtype, start), autocast::in(*dtype, end), autocast::in(*dtype, weight), variant);
  return interpolated(start, end, weight, {}, variant);
}

Tensor lerp(const Tensor& start, const Tensor& end, Scalar weight, std::string_view variant) {
  if (const auto dtype = autocast::wanted("lerp", {&start, &end}))
    return lerp(autocast::in(*dtype, start), autocast::in(*dtype, end), weight, variant);
  return interpolated(start, end, {}, weight, variant);
}

}  // namespace rooflab
