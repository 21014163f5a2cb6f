// arange: y[i] = first + i step, in int64 or in double, rounded to the dtype. A product is rounded before it is added,
// so that the numbers are NumPy's. linspace is arange with a last number, which stands at the end as it is given.
//
// FLOPs: counted as none. Compulsory bytes: each element written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"
#include "kernels/elementwise/elementwise.h"

namespace rooflab::kernels {

struct ArangeArgs {
  void* y;  // count elements, contiguous
  int64_t count;
  ElementwiseScalar first, step;  // their integers, or their real numbers
  bool in_integers;
  bool has_last;
  double last;
  DType dtype;
};

extern const Ladder<ArangeArgs> arange_ladder;

}  // namespace rooflab::kernels
