// arg_reduce: the position of the largest (argmax, max) or smallest (argmin, min) element along one axis, and the
// element itself where it is asked for. The input is viewed as (outer, reduced, inner). Among equal elements the first
// is chosen; a NaN counts as both larger and smaller than any number.
//
// FLOPs: 1 per input element. Compulsory bytes: each input element read once, each output written once. Roof: memory
// bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct ArgReduceArgs {
  const void* x;     // (outer, reduced, inner), reduced >= 1
  void* values;      // (outer, inner), contiguous, of dtype; null when only the positions are asked for
  int64_t* indices;  // (outer, inner), contiguous
  int64_t outer, reduced, inner;
  int64_t outer_stride, reduced_stride, inner_stride;  // of x, in elements
  bool largest;
  DType dtype;
};

extern const Ladder<ArgReduceArgs> arg_reduce_ladder;

}  // namespace rooflab::kernels
