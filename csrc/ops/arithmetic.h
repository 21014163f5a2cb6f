// Tensor arithmetic in the notation of formulas, for backward rules and for ops that are made of others.
#pragma once

#include "ops/ops.h"

namespace rooflab {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return elementwise(ElementwiseOp::kAdd, a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return elementwise(ElementwiseOp::kSub, a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return elementwise(ElementwiseOp::kMul, a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return elementwise(ElementwiseOp::kDiv, a, b); }

inline Tensor operator+(const Tensor& a, double b) { return elementwise(ElementwiseOp::kAdd, a, Scalar{b}); }
inline Tensor operator*(const Tensor& a, double b) { return elementwise(ElementwiseOp::kMul, a, Scalar{b}); }
inline Tensor operator+(double a, const Tensor& b) { return b + a; }
inline Tensor operator-(double a, const Tensor& b) { return elementwise(ElementwiseOp::kSub, Scalar{a}, b); }
inline Tensor operator*(double a, const Tensor& b) { return b * a; }
inline Tensor operator-(const Tensor& x) { return elementwise(ElementwiseOp::kNeg, x); }

// A 16-bit tensor in float32, where powers do not overflow and differences keep their digits; others are returned as
// they are.
inline Tensor widen(const Tensor& x) { return size_of(x.dtype()) == 2 ? cast(x, DType::kFloat32) : x; }

// The gradient of an operand of `shape` that was broadcast: summed over the copies of each element.
Tensor sum_to(const Tensor& gradient, const Shape& shape);

}  // namespace rooflab
