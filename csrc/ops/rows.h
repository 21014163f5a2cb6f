// A tensor viewed as rows along its last dimension, for ops that work on rows of adjacent elements.
#pragma once

#include <cmath>

#include "core/tensor_check.h"
#include "ops/ops.h"

namespace rooflab {

struct Rows {
  Tensor x;  // keeps the memory alive; a copy if the strides do not allow a view
  int64_t n, d, stride;
};

// as_rows() without a copy: x is not defined where there will be one. That is enough to choose a rung, because new
// memory is aligned as a null pointer is.
inline Rows planned_rows(const Tensor& x) {
  const int64_t d = x.shape().back(), n = x.numel() / d;
  if (const auto rows = x.try_view({n, d}); rows && (d == 1 || rows->stride(1) == 1))
    return {*rows, n, d, n == 1 ? d : rows->stride(0)};
  return {Tensor(), n, d, d};
}

// x (..., D), D > 0, as (N, D) with one stride between rows.
inline Rows as_rows(const Tensor& x) {
  Rows rows = planned_rows(x);
  if (!rows.x.defined()) rows.x = operand_as(x, copy(x.detach()));
  return rows;
}

// Checks a weight or bias over the last dimension of x, if there is one.
inline void check_parameter(const char* op, const char* argument, const Tensor& x,
                            const std::optional<Tensor>& parameter) {
  if (!parameter) return;
  RL_CHECK(parameter->ndim() == 1 && parameter->size(0) == x.shape().back(), op, argument,
           ": expected (D=", x.shape().back(), "), got ", to_string(parameter->shape()));
  check_same_device(op, x, *parameter);
  check_same_dtype(op, x, *parameter);
}

// The eps of a norm, which is added to a mean of squares.
inline void check_eps(const char* op, double eps) {
  RL_CHECK(eps >= 0 && std::isfinite(eps), op, "eps: expected a number that is finite and not negative, got ", eps);
}

// Checks an operand (..., D), called `name`, and a gradient of its shape.
inline void check_gradient_of_rows(const char* op, const char* argument, const Tensor& dy, const Tensor& x) {
  check_floating(op, argument, x);
  RL_CHECK(x.ndim() > 0, op, argument, ": expected (..., D), got ()");
  RL_CHECK(dy.shape() == x.shape(), op, "dy: expected the shape of ", argument, " ", x.shape(), ", got ", dy.shape());
  check_same_device(op, x, dy);
  check_same_dtype(op, x, dy);
}

// The parameter in the form that kernels take: contiguous; its data() is null if there is none.
inline Tensor as_parameter(const Tensor& parameter) {
  return parameter.defined() ? operand_as(parameter, contiguous(parameter.detach())) : Tensor();
}

}  // namespace rooflab
