// The backward rules of the elementwise family (elementwise_gradients.cpp).
#pragma once

#include "ops/elementwise.h"

namespace rooflab {

inline bool requires_grad(const Operand& x) { return x.tensor && autograd::requires_grad(*x.tensor); }

// Each records y = op(...) if one of the operands requires grad and grad mode is on.
void record_unary(ElementwiseOp op, Tensor& y, const Tensor& x);
void record_binary(ElementwiseOp op, Tensor& y, const Operand& a, const Operand& b);
void record_where(Tensor& y, const Tensor& condition, const Operand& a, const Operand& b);
void record_clamp(Tensor& y, const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high);

}  // namespace rooflab
