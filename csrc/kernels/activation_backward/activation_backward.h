// gelu_backward and silu_backward: da = dy act'(a). geglu_backward and swiglu_backward, for a gated activation
// y = act(a) b:
//   da = dy b act'(a)        db = dy act(a).
// Both activations have the form a s with s = 1 / (1 + exp(-u)): silu has u = a, and gelu in its tanh form has
// u = 2 sqrt(2/pi) (a + 0.044715 a^3). So act'(a) = s (1 + a (1 - s) u').
//
// FLOPs: 6 per element for silu, 13 for gelu, and 3 more where gated (dy b, act, dy act); computing s counts as one.
// Compulsory bytes: dy, a and b read once, da and db written once. Roof: memory bandwidth everywhere.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

enum class Activation : uint8_t { kGelu, kSilu };

// Outside these ranges s is 0 or 1 to within float's precision, and powers of a could overflow.
struct ActivationRange {
  float low, high;
};
constexpr ActivationRange kGeluRange{-10, 10}, kSiluRange{-87, 87};

struct ActivationBackwardArgs {
  const void* dy;  // (N, D), elements of a row adjacent, as in a and b; N is 1 where all three are contiguous
  const void* a;   // (N, D)
  const void* b;   // (N, D); null: not gated
  void* da;        // (N, D), contiguous
  void* db;        // (N, D), contiguous; null: not gated
  int64_t n, d;
  int64_t dy_row_stride, a_row_stride, b_row_stride;  // in elements
  Activation activation;
  DType dtype;
};

extern const Ladder<ActivationBackwardArgs> activation_backward_ladder;

}  // namespace rooflab::kernels
