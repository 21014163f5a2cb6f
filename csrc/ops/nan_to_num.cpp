// nan_to_num: the member of the elementwise family that takes three numbers, and its backward rule.
#include <cmath>
#include <limits>

#include "core/range.h"
#include "core/tensor_check.h"
#include "ops/elementwise.h"
#include "ops/elementwise_gradients.h"

namespace rooflab {
namespace {

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return std::numeric_limits<float>::max();
    case DType::kFloat16: return 65504;
    case DType::kBFloat16: return 0x1.fep127;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kInt32:
    case DType::kBool: break;
  }
  return std::numeric_limits<double>::max();
}

}  // namespace

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf,
                  std::string_view variant) {
  const OpScope scope("nan_to_num");
  check_floating("nan_to_num", "x", x);
  const auto number = [&](double value) { return Scalar{rounded(value, x.dtype()), 0}; };
  const double largest = largest_of(x.dtype());
  Operand of_x(x);
  of_x.scalar = number(nan);
  Tensor y = empty_beside({x}, x.shape(), x.dtype(), x.device());
  submit_into(ElementwiseOp::kNanToNum, {of_x, number(posinf.value_or(largest)), number(neginf.value_or(-largest))},
              x.dtype(), y, variant);
  if (autograd::recording(x))
    autograd::record("nan_to_num", y, {x}, autograd::saving(x), [](const Tensor& dy, const Tensor& x) {
      const Tensor is_finite =
          elementwise(ElementwiseOp::kLt, elementwise(ElementwiseOp::kAbs, x), Scalar{INFINITY, 0});
      return where(is_finite, dy, Scalar{});
    });
  return y;
}

}  // namespace rooflab
