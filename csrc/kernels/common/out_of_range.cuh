// How a GPU kernel tells the host of a number that is out of range (core/out_of_range.h).
#pragma once

#include "core/out_of_range.h"

namespace rooflab::kernels {

// The first one stays until the host has read it. `to` is the host's memory. Where several kernels report at once, the
// parts of their reports may mix.
__device__ __forceinline__ void report(volatile OutOfRange* to, const OutOfRange& found) {
  if (to->kind != OutOfRange::kNone) return;
  to->number = found.number;
  to->limit = found.limit;
  to->detail = found.detail;
  to->op = found.op;
  __threadfence_system();
  to->kind = found.kind;
}

}  // namespace rooflab::kernels
