#include "ops/elementwise_gradients.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/activation_backward.h"
#include "ops/arithmetic.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

using autograd::record;
using autograd::Ref;
using autograd::saving;
using enum ElementwiseOp;
using kernels::Activation;

Activation activation_of(ElementwiseOp gated) { return gated == kGeglu ? Activation::kGelu : Activation::kSilu; }

// Operands that are numbers stay numbers.
Tensor apply(ElementwiseOp op, const Operand& a, const Operand& b) {
  if (!a.tensor) return elementwise(op, a.scalar, *b.tensor);
  return b.tensor ? elementwise(op, *a.tensor, *b.tensor) : elementwise(op, *a.tensor, b.scalar);
}

// Whether the rule needs the result, not the operand.
bool keeps_result(ElementwiseOp op) {
  return op == kRelu || op == kExp || op == kTanh || op == kSqrt || op == kRsqrt || op == kSigmoid;
}

// `kept` is x or y, as keeps_result() says.
Tensor unary_gradient(ElementwiseOp op, const Tensor& dy, const Tensor& kept) {
  const Tensor &x = kept, &y = kept;
  switch (op) {
    case kNeg: return -dy;
    case kAbs: {
      const Tensor where_not_positive = where(elementwise(kLt, x, Scalar{}), -dy, Scalar{});
      return where(elementwise(kGt, x, Scalar{}), dy, where_not_positive);
    }
    case kRelu: return elementwise(kReluBackward, dy, y);
    case kExp: return dy * y;
    case kLog: return dy / x;
    case kLog2: return dy / (x * std::numbers::ln2);
    case kLog10: return dy * (1 / std::numbers::ln10) / x;  // x ln 10 may be too large for float16
    case kTanh: return elementwise(kTanhBackward, dy, y);
    case kSqrt: return 0.5 * dy / y;
    case kRsqrt: return -0.5 * dy * (y * y * y);
    case kSin: return dy * elementwise(kCos, x);
    case kCos: return -(dy * elementwise(kSin, x));
    case kSigmoid: return elementwise(kSigmoidBackward, dy, y);
    case kSilu: return activation_gradient(Activation::kSilu, dy, x);
    case kSoftplus: return dy * elementwise(kSigmoid, x);
    case kLogsigmoid: return dy * elementwise(kSigmoid, -x);
    default: return dy;  // copy
  }
}

Tensor zeros_like(const Tensor& x) {
  const Tensor made = Tensor::empty(x.shape(), x.dtype(), x.device());
  fill(made, Scalar{});
  return made;
}

// b a^(b - 1), which is 0 for b = 0 even where a is 0 or NaN.
Tensor power_slope(const Tensor& a, const Operand& b) {
  if (!b.tensor) {
    if (b.scalar.real == 0) return zeros_like(a);
    return b.scalar.real == 2 ? a * 2.0 : elementwise(kPow, a, Scalar{b.scalar.real - 1}) * b.scalar.real;
  }
  const Tensor exponent = is_floating(b.tensor->dtype()) ? *b.tensor : cast(*b.tensor, a.dtype());
  const Tensor slope = exponent * elementwise(kPow, a, exponent + -1.0);
  return where(elementwise(kEq, exponent, Scalar{}), Scalar{}, slope);
}

// y log(a). Where a is 0, y is infinite if b is negative, and the slope is 0 if it is not.
Tensor exponent_slope(const Operand& a, const Tensor& y) {
  const Tensor slope = a.tensor ? y * elementwise(kLog, *a.tensor) : y * std::log(a.scalar.real);
  if (!a.tensor && a.scalar.real != 0) return slope;
  const Tensor is_finite = elementwise(kLt, y, Scalar{INFINITY, 0});
  const Tensor is_flat = a.tensor ? elementwise(kEq, *a.tensor, Scalar{}) * is_finite : is_finite;
  return where(is_flat, Scalar{}, slope);
}

// For maximum and minimum: the larger, or smaller, operand gets dy; equal ones share it.
Tensor chosen_gradient(ElementwiseOp op, const Tensor& dy, const Operand& x, const Operand& other) {
  const Tensor shared = where(apply(kEq, x, other), 0.5 * dy, dy);
  return where(apply(op == kMaximum ? kLt : kGt, x, other), Scalar{}, shared);
}

Tensor is_positive(const Tensor& x) { return elementwise(kGt, x, Scalar{}); }

// b exp(a) where a is not positive. The others get exp(0), so that no infinite slope reaches the gradient of this one.
Tensor elu_gradient(const Tensor& dy, const Tensor& a, const Operand& b) {
  const Tensor positive = is_positive(a);
  return where(positive, dy, dy * apply(kMul, elementwise(kExp, where(positive, Scalar{}, a)), b));
}

// The gradient of the factor below 0: of dy times what it multiplies there.
Tensor factor_gradient(ElementwiseOp op, const Tensor& dy, const Operand& a) {
  const auto product = [&](const auto& below) {
    return dy * (op == kElu ? elementwise(kElu, below, Scalar{1.0, 1}) : below);
  };
  if (a.tensor) return where(is_positive(*a.tensor), Scalar{}, product(*a.tensor));
  const double below = std::min(a.scalar.real, 0.0);
  return dy * (op == kElu ? std::expm1(below) : below);
}

Tensor gradient_of_a(ElementwiseOp op, const Tensor& dy, const Operand& a, const Operand& b) {
  switch (op) {
    case kMul: return apply(kMul, dy, b);
    case kPrelu: return where(is_positive(*a.tensor), dy, apply(kMul, dy, b));
    case kElu: return elu_gradient(dy, *a.tensor, b);
    case kGeglu:
    case kSwiglu: return activation_gradient(activation_of(op), apply(kMul, dy, b), *a.tensor);
    case kDiv: return apply(kDiv, dy, b);
    case kReluBackward:
    case kTanhBackward:
    case kSigmoidBackward: return apply(op, dy, b);
    case kPow: return dy * power_slope(*a.tensor, b);
    case kMaximum:
    case kMinimum: return chosen_gradient(op, dy, a, b);
    default: return dy;  // add, sub, remainder
  }
}

Tensor gradient_of_b(ElementwiseOp op, const Tensor& dy, const Operand& a, const Operand& b, const Tensor& y) {
  switch (op) {
    case kSub: return -dy;
    case kMul: return apply(kMul, dy, a);
    case kPrelu:
    case kElu: return factor_gradient(op, dy, a);
    case kGeglu:
    case kSwiglu: return apply(op, a, dy);  // the activation times dy
    case kDiv: return -(dy * apply(kDiv, apply(kDiv, a, b), b));
    case kReluBackward: return zeros_like(dy);
    case kTanhBackward: return -2.0 * (dy * apply(kMul, a, b));
    case kSigmoidBackward: return dy * apply(kMul, a, 1.0 + -2.0 * *b.tensor);
    case kPow: return dy * exponent_slope(a, y);
    case kRemainder: return -(dy * apply(kFloorDivide, a, b));
    case kMaximum:
    case kMinimum: return chosen_gradient(op, dy, b, a);
    default: return dy;  // add
  }
}

// The shape and the dtype of an operand, which its gradient has too.
struct Like {
  Shape shape;
  DType dtype = DType::kFloat32;

  explicit Like(const Operand& x) {
    if (!x.tensor) return;
    shape = x.tensor->shape();
    dtype = x.tensor->dtype();
  }
  Tensor of(const Tensor& gradient) const { return cast(sum_to(gradient, shape), dtype); }
};
Ref input(const Operand& x) { return x.tensor ? Ref(*x.tensor) : Ref(std::nullopt); }
Ref only_if(bool needed, const Operand& x) { return needed ? input(x) : Ref(std::nullopt); }
Operand operand(const Tensor& saved, Scalar number) { return saved.defined() ? Operand(saved) : Operand(number); }

}  // namespace

void record_unary(ElementwiseOp op, Tensor& y, const Tensor& x) {
  const bool is_step = op >= kFloor && op <= kSign;  // its slope is zero
  if (!autograd::recording(x) || !is_floating(y.dtype()) || is_step) return;
  const char* name = kernels::info(op).name;
  if (op == kCast) return record(name, y, {x}, [from = x.dtype()](const Tensor& dy) { return cast(dy, from); });
  const bool keeps_nothing = op == kNeg || op == kCopy;
  record(name, y, {x}, saving(autograd::only_if(!keeps_nothing, keeps_result(op) ? y : x)),
         [op](const Tensor& dy, const Tensor& kept) { return unary_gradient(op, dy, kept); });
}

void record_binary(ElementwiseOp op, Tensor& y, const Operand& a, const Operand& b) {
  const bool da = requires_grad(a), db = requires_grad(b);
  if (!(da || db) || !autograd::is_enabled() || kernels::is_comparison(op) || op == kFloorDivide)
    return;  // step functions have slope zero
  const bool is_linear = op == kAdd || op == kSub, is_choice = op == kMaximum || op == kMinimum;
  const bool is_gated = op == kGeglu || op == kSwiglu, is_slope = op >= kReluBackward && op <= kSigmoidBackward;
  const bool is_bent = op == kPrelu || op == kElu;
  const bool keeps_a = !is_linear && (db || op == kPow || is_gated || is_choice || is_bent);
  const bool keeps_b =
      !is_linear && ((da && op != kRemainder) || op == kDiv || (db && op == kRemainder) || is_choice || is_slope);
  record(kernels::info(op).name, y, {input(a), input(b)},
         saving(only_if(keeps_a, a), only_if(keeps_b, b), only_if(op == kPow && db, y)),
         [op, a_like = Like(a), b_like = Like(b), a_number = a.scalar, b_number = b.scalar](
             const Gradients& d, const Tensor& a_saved, const Tensor& b_saved, const Tensor& y) -> Tensors {
           const Operand a = operand(a_saved, a_number), b = operand(b_saved, b_number);
           const bool is_gated = op == kGeglu || op == kSwiglu;
           if (is_gated && a.tensor && b.tensor && a_like.shape == b_like.shape && !Trace::current()) {
             const GatedGradients found = gated_backward(activation_of(op), d, *a.tensor, *b.tensor);
             return {found.da, found.db};
           }
           return {d.wanted(0) ? a_like.of(gradient_of_a(op, d, a, b)) : Tensor(),
                   d.wanted(1) ? b_like.of(gradient_of_b(op, d, a, b, y)) : Tensor()};
         });
}

void record_where(Tensor& y, const Tensor& condition, const Operand& a, const Operand& b) {
  if (!(requires_grad(a) || requires_grad(b)) || !autograd::is_enabled()) return;
  record("where", y, {condition, input(a), input(b)}, saving(condition),
         [a_like = Like(a), b_like = Like(b)](const Gradients& d, const Tensor& condition) -> Tensors {
           return {Tensor(), d.wanted(1) ? a_like.of(where(condition, d, Scalar{})) : Tensor(),
                   d.wanted(2) ? b_like.of(where(condition, Scalar{}, d)) : Tensor()};
         });
}

// At a bound, and for NaN, the gradient is 0.
void record_clamp(Tensor& y, const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high) {
  if (!autograd::recording(x) || !is_floating(y.dtype())) return;
  record("clamp", y, {x}, saving(x), [low, high](const Tensor& dy, const Tensor& x) {
    Tensor dx = dy;
    if (low) dx = where(elementwise(kGt, x, *low), dx, Scalar{});
    if (high) dx = where(elementwise(kLt, x, *high), dx, Scalar{});
    return dx;
  });
}

}  // namespace rooflab
