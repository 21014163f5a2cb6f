// What the files of the elementwise family share, and the moves of the family that other ops use inside a call of their
// own.
#pragma once

#include <initializer_list>
#include <optional>

#include "ops/ops.h"

namespace rooflab {

// An input: a tensor, or a number, which has no gradient. A tensor's number is that of nan_to_num.
struct Operand {
  const Tensor* tensor;
  Scalar scalar;

  Operand(const Tensor& x) : tensor(&x) {}
  Operand(Scalar x) : tensor(nullptr), scalar(x) {}
};

// What an op computes in, and the dtype of its result.
struct ElementwiseDTypes {
  DType computed, result;
};
// ValueError for operands that `op` does not take; ZeroDivisionError for an integer divided by the number 0.
ElementwiseDTypes dtypes_of(ElementwiseOp op, const Operand& a, const Operand& b);

// Memory for a result. That of x.T + y.T lies in memory as x.T does: where the operands of this shape are turned alike,
// neighbours meet neighbours. All others are in order.
Tensor empty_beside(std::initializer_list<Operand> operands, const Shape& shape, DType dtype, Device device);

// The dimensions from the one whose steps in memory are longest to the one whose steps are shortest.
Shape memory_order(const Shape& strides);

// Runs a member of the family, which writes `out`. The operands broadcast to its shape. They are converted to `dtype`,
// and the result is converted to that of `out`. A copy of a number counts as `fill`.
void submit_into(ElementwiseOp op, std::initializer_list<Operand> operands, DType dtype, const Tensor& out,
                 std::string_view variant = {});

// Writes `from`, which broadcasts, into `to` in the dtype of `to`; the number if `from` is not defined. It is one
// launch of the current op.
void write_elements(const Tensor& from, const Tensor& to, Scalar number = {});

// The number as the bits of an element of the dtype.
int64_t bits_of(const kernels::ElementwiseScalar& number, DType dtype);

// The number after rounding to the dtype.
double rounded(double number, DType dtype);

}  // namespace rooflab
