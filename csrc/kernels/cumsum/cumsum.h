// cumsum: running sums along one axis, with the input viewed as (outer, n, inner): y[o, k, i] = sum_{j <= k} x[o, j,
// i]. Floats are accumulated in double on the CPU and by v0 on the GPU, and in float (double for float64) by the GPU's
// v1. Integers and bool are accumulated in int64.
//
// Ladder, CPU:
//   v0_reference   one thread, one line at a time
//   v1_parallel    all threads; neighbouring lines walk the axis together
// Ladder, CUDA:
//   v0_reference   one thread per line
//   v1_block_scan  one block per line, 256 elements at a time by warp scans; inner = 1
//
// FLOPs: 1 per element. Compulsory bytes: each element read once and written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"

namespace rooflab::kernels {

struct CumsumArgs {
  const void* x;  // (outer, n, inner)
  void* y;        // the same; int64 for integers and bool, else of dtype
  int64_t outer, n, inner;
  int64_t x_outer_stride, x_stride, x_inner_stride;  // in elements; negative along the axis to sum from its end
  int64_t y_outer_stride, y_stride, y_inner_stride;
  DType dtype;
};

bool cumsum_cuda_v1_accepts(const CumsumArgs&, const Target&);

void cumsum_cpu_v0_reference(const CumsumArgs&, Queue&);
void cumsum_cpu_v1_parallel(const CumsumArgs&, Queue&);
[[gnu::weak]] void cumsum_cuda_v0_reference(const CumsumArgs&, Queue&);
[[gnu::weak]] void cumsum_cuda_v1_block_scan(const CumsumArgs&, Queue&);

}  // namespace rooflab::kernels
