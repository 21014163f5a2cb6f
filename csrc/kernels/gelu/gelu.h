// gelu (tanh form): y = x / 2 * (1 + tanh(u)), u = sqrt(2 / pi) * (x + 0.044715 x^3), in one pass over x of any shape.
// All rungs compute the equivalent y = x / (1 + exp(-2u)): one exponential and one division, and no 1 + tanh that
// cancels for negative x. NaN gives NaN, and infinities give the limits: +inf and 0.
//
// FLOPs: 8 per element (cube, scale, add; scale by sqrt(2 / pi); tanh; 1 +, x / 2, product). Compulsory bytes: x once,
// y once. Roof: memory bandwidth.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "core/queue.h"
#include "core/shape.h"
#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct GeluArgs {
  const void* x;  // of sizes[ndim] and strides[ndim], in elements
  void* y;        // as many elements, adjacent in the order of the sizes
  DType dtype;    // floating
  int ndim;       // at least 1; an x that lies in memory as y does has one dimension
  int64_t count;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];
};

extern const Ladder<GeluArgs> gelu_ladder;

}  // namespace rooflab::kernels
