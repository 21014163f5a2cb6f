// What rope and rms_norm_rope share: operands checked and converted to (B, H, L, D_h).
#pragma once

#include "kernels/rope/rope.h"
#include "ops/ops.h"

namespace rooflab {

// ValueError unless x is (B, H, L, D_h) or (H, L, D_h) and cos and sin are tables for it.
void check_rope(const char* op, const Tensor& x, const Tensor& cos, const Tensor& sin);

struct RopeOperands {
  Tensor x, cos, sin, y;  // (B, H, L, D_h); tables (B or 1, 1, L, D_h)
  kernels::RopeArgs args;

  RopeOperands(const Tensor& x, const Tensor& cos, const Tensor& sin, const Tensor& y, bool is_reverse);
};

Tensor empty_rope_result(const Tensor& x);  // laid out like x

}  // namespace rooflab
