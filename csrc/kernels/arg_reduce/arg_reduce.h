// arg_reduce: the position of the largest (argmax, max) or smallest (argmin, min) element along one axis, and the
// element itself where it is asked for. The input is viewed as (outer, reduced, inner). Among equal elements the first
// is chosen; a NaN counts as both larger and smaller than any number.
//
// Ladder, CPU:
//   v0_reference   one thread, one output at a time
//   v1_parallel    all threads; neighbouring outputs walk the axis together, and a single output is reduced in vectors
// Ladder, CUDA:
//   v0_reference   one thread per output
//   v1_block       one block per output, which folds pairs of value and position; inner = 1
//
// FLOPs: 1 per input element. Compulsory bytes: each input element read once, each output written once. Roof: memory
// bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"

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

bool arg_reduce_cuda_v1_accepts(const ArgReduceArgs&, const Target&);

void arg_reduce_cpu_v0_reference(const ArgReduceArgs&, Queue&);
void arg_reduce_cpu_v1_parallel(const ArgReduceArgs&, Queue&);
[[gnu::weak]] void arg_reduce_cuda_v0_reference(const ArgReduceArgs&, Queue&);
[[gnu::weak]] void arg_reduce_cuda_v1_block(const ArgReduceArgs&, Queue&);

}  // namespace rooflab::kernels
