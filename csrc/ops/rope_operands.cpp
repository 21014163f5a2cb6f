#include "ops/rope_operands.h"

#include "core/tensor_check.h"
#include "ops/attention_operands.h"

namespace rooflab {
namespace {

void check_table(const char* op, const char* argument, const Tensor& table, const Tensor& x) {
  check_same_device(op, x, table);
  check_same_dtype(op, x, table);
  const int64_t batch = x.ndim() == 4 ? x.size(0) : 1;
  const Shape row{x.size(-2), x.size(-1)}, each{batch, x.size(-2), x.size(-1)};
  RL_CHECK(table.shape() == row || table.shape() == each, op, argument, ": expected (L, D_h) = ", row,
           " or (B, L, D_h) = ", each, ", got ", table.shape());
}

// As (B, H, L, D_h) with contiguous rows and a head stride of 0.
Tensor table_of_heads(const Tensor& table) {
  const Tensor heads = table.ndim() == 2 ? table.unsqueeze(0) : table;
  return operand_as(table, as_heads(heads)).transpose(0, 1);  // from (1, 1, L, D_h) or (1, B, L, D_h)
}

kernels::AttentionStrides table_strides(const Tensor& table) {
  return {table.size(0) == 1 ? 0 : table.stride(0), 0, table.stride(2)};
}

}  // namespace

void check_rope(const char* op, const Tensor& x, const Tensor& cos, const Tensor& sin) {
  check_floating(op, "x", x);
  RL_CHECK(x.ndim() == 3 || x.ndim() == 4, op, "x: expected (B, H, L, D_h) or (H, L, D_h), got ", x.shape());
  RL_CHECK(x.size(-1) % 2 == 0, op, "x: expected an even D_h, got ", x.shape());
  check_table(op, "cos", cos, x);
  check_table(op, "sin", sin, x);
}

RopeOperands::RopeOperands(const Tensor& x_in, const Tensor& cos_in, const Tensor& sin_in, const Tensor& y_in,
                           bool is_reverse)
    : x(operand_as(x_in, as_heads(x_in))),
      cos(table_of_heads(cos_in)),
      sin(table_of_heads(sin_in)),
      y(y_in.ndim() == 3 ? y_in.unsqueeze(0) : y_in),
      args{x.data(),   cos.data(), sin.data(),           y.data(),           x.size(0),          x.size(1),
           x.size(2),  x.size(3),  attention_strides(x), table_strides(cos), table_strides(sin), attention_strides(y),
           is_reverse, x.dtype()} {}

Tensor empty_rope_result(const Tensor& x) {
  return x.ndim() == 3 ? empty_laid_out_like(x.unsqueeze(0)).squeeze(0) : empty_laid_out_like(x);
}

}  // namespace rooflab
