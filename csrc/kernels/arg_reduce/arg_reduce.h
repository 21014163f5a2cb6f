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

// How the GPU's v2 divides the work: blocks of (columns, steps, rows) threads. `columns` neighbours along the inner
// axis are reduced side by side, `steps` threads share the reduced axis, and so do `splits` blocks.
struct ArgReducePlan {
  bool along;                // the reduced axis is contiguous and read 16 bytes at a time
  int columns, steps, rows;  // powers of two
  int64_t column_tiles, row_tiles, splits;
};
ArgReducePlan arg_reduce_plan(const ArgReduceArgs&);
inline constexpr int64_t kArgReducePlaceBytes = 16;  // of a value and its position, in scratch between the kernels

extern const Ladder<ArgReduceArgs> arg_reduce_ladder;

}  // namespace rooflab::kernels
