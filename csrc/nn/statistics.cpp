// Tests of each element, and of all of them over dimensions.
#include <cmath>

#include "autograd/tape.h"
#include "nn/nn.h"
#include "ops/arithmetic.h"
#include "ops/promotion.h"

namespace rooflab::nn {
namespace {

using enum ElementwiseOp;
constexpr Scalar kZero{}, kTrue{1, 1}, kInfinity{INFINITY, 0};

Tensor filled_like(const Tensor& x, Scalar value) {
  const Tensor y = Tensor::empty(x.shape(), DType::kBool, x.device());
  fill(y, value);
  return y;
}

// |a - b|; `wide_a` and `wide_b` are the same numbers in the type that isclose computes in. That type rounds int64
// beyond 2^53, so int64 is subtracted as it is, unless the difference could overflow.
Tensor distance(const Tensor& a, const Tensor& b, const Tensor& wide_a, const Tensor& wide_b) {
  const Tensor wide = elementwise(kAbs, wide_a - wide_b);
  if (a.dtype() != DType::kInt64) return wide;
  const Tensor exact = elementwise(kAbs, cast(a - b, DType::kFloat64));
  return where(elementwise(kLt, wide, Scalar{0x1p62}), exact, wide);
}

void check_mask(const Tensor& x, const Tensor& mask) {
  RL_CHECK(mask.dtype() == DType::kBool, "masked_fill", "mask: expected bool, got ", name(mask.dtype()));
  RL_CHECK(broadcast_shapes("masked_fill", x.shape(), mask.shape()) == x.shape(), "masked_fill", "mask: ", mask.shape(),
           " does not broadcast to ", x.shape());
}

}  // namespace

Tensor isnan(const Tensor& x) { return is_floating(x.dtype()) ? elementwise(kNe, x, x) : filled_like(x, kZero); }
Tensor isinf(const Tensor& x) {
  return is_floating(x.dtype()) ? elementwise(kEq, elementwise(kAbs, x), kInfinity) : filled_like(x, kZero);
}
Tensor isfinite(const Tensor& x) {
  return is_floating(x.dtype()) ? elementwise(kLt, elementwise(kAbs, x), kInfinity) : filled_like(x, kTrue);
}

Tensor isclose(const Tensor& a_in, const Tensor& b_in, double rtol, double atol, bool equal_nan) {
  RL_CHECK(rtol >= 0 && atol >= 0, "isclose", "rtol and atol: expected >= 0, got ", rtol, " and ", atol);
  RL_CHECK(a_in.dtype() == b_in.dtype(), "isclose", "operands are ", name(a_in.dtype()), " and ", name(b_in.dtype()),
           "; convert one with .to()");
  broadcast_shapes("isclose", a_in.shape(), b_in.shape());
  const DType type = is_floating(a_in.dtype()) && size_of(a_in.dtype()) > 2 ? a_in.dtype()
                     : is_floating(a_in.dtype())                            ? DType::kFloat32
                                                                            : DType::kFloat64;
  const Tensor a = cast(a_in.detach(), type), b = cast(b_in.detach(), type);
  const Tensor error = distance(a_in.detach(), b_in.detach(), a, b), allowed = elementwise(kAbs, b) * rtol + atol;
  // An infinite error is within no tolerance, not even an infinite one. Equal elements are close, infinities too.
  const Tensor within = where(elementwise(kLt, error, kInfinity), elementwise(kLe, error, allowed), kZero);
  const Tensor close = where(elementwise(kEq, a_in.detach(), b_in.detach()), kTrue, within);
  return equal_nan ? where(isnan(a), where(isnan(b), kTrue, close), close) : close;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  check_mask(x, mask);
  check_number("masked_fill", value, x.dtype());
  return where(mask, Scalar{value.real, value.integer}, x);  // of the dtype of x
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value) {
  check_mask(x, mask);
  RL_CHECK(value.ndim() == 0, "masked_fill", "value: expected one number, got a tensor of shape ", value.shape());
  return where(mask, cast(to_device(value, x.device()), x.dtype()), x);
}

}  // namespace rooflab::nn
