// cumsum: running sums along one axis, with the input viewed as (outer, n, inner): y[o, k, i] = sum_{j <= k} x[o, j,
// i]. Floats are accumulated in double on the CPU and by v0 on the GPU. The GPU's v1 scans 256 elements at a time in
// float (double for float64), v1a 32 and v2 the 128 of a warp; all carry their sums on in double. Integers and bool are
// accumulated in int64. A scan adds in another order than a loop. So on a GPU infinity or NaN may stand where numbers
// near float's largest cancel each other, as in [-3e38, 3e38, 3e38, -3e38].
//
// FLOPs: 1 per element. Compulsory bytes: each element read once and written once. Roof: memory bandwidth.
#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/ladder_declaration.h"

namespace rooflab::kernels {

struct CumsumArgs {
  const void* x;  // (outer, n, inner)
  void* y;        // the same; int64 for integers and bool, else of dtype
  int64_t outer, n, inner;
  int64_t x_outer_stride, x_stride, x_inner_stride;  // in elements; negative along the axis to sum from its end
  int64_t y_outer_stride, y_stride, y_inner_stride;
  DType dtype;
};

// The CPU's v2: fewer lines side by side leave most of a vector empty.
inline constexpr int kCumsumFewLines = 8;

// The GPU's v2 divides a line into this many chunks, of some tiles each.
inline constexpr int64_t kCumsumTile = 1024;  // elements
int64_t cumsum_chunks(const CumsumArgs&);

extern const Ladder<CumsumArgs> cumsum_ladder;

}  // namespace rooflab::kernels
