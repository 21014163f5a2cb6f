// reduce: sum, mean, amax or amin over one axis, with the input viewed as (outer, reduced, inner); several adjacent
// axes, or all, merge into one. y[o, i] = sum_k x[o, k, i]  (or mean, largest, smallest, where a NaN counts as both).
// Sums are accumulated in float (double for float64, int64 for integers and bool). The order of additions depends on
// the shape alone, so a result is the same on every run and for any number of threads. A sum is infinite only where the
// sum in double does not fit the dtype: pieces that overflow float on the way are summed again, in double on the CPU,
// and after scaling them down on a GPU.
//
// Ladder, CPU:
//   v0_reference   one thread, plain loops
//   v1_simd        SIMD, all threads; the axis is split into pieces whose sums are added in order in double
// Ladder, CUDA:
//   v0_reference   one thread per output
//   v1_block_tree  a block shares the reduced axis and folds its sums in shared memory; where outputs are few, the axis
//                  is also split over blocks, and a second kernel folds their parts
//   v2_vectorised  the same with 16-byte loads, along the reduced axis or across the outputs, whichever is contiguous
//
// [measured sum] python -m rooflab.benchmark.tables writes this from assets/bench; - is not measured
// AMD EPYC, 2 threads, avx512, 2026-11-22, rooflab 0.1.0:
//                 16384x4096  16384x4096  16384x4096
//                       rows     columns         all
//                    float32     float32     float32
//                  % of copy   % of copy   % of copy
//   v0_reference          21         2.1          21
//   v1_simd              120         100         130
//   copy, GB/s            31          30          31
// NVIDIA H200, driver 580.159.04, CUDA 13.0, 2026-11-24, rooflab 0.1.0, torch 2.11.0:
//                  16384x4096  16384x4096  16384x4096  16384x4096  16384x4096  16384x4096
//                        rows     columns         all        rows     columns         all
//                    bfloat16    bfloat16    bfloat16     float32     float32     float32
//                   % of copy   % of copy   % of copy   % of copy   % of copy   % of copy
//   v0_reference           11         1.8      0.0017          18         3.5      0.0024
//   v1_block_tree          32          47          49          65          76          76
//   v2_vectorised          93          73          85         100          94          95
//   torch                  92          74          90          97          88          97
//   copy, GB/s           3860        3865        3866        4080        4067        4072
// [end measured]
//
// FLOPs: 1 per input element. Compulsory bytes: each input element read once, each output written once. Roof: memory
// bandwidth.
#pragma once

#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/per_isa.h"

namespace rooflab::kernels {

enum class ReduceOp : uint8_t { kSum, kMean, kMax, kMin };

struct ReduceArgs {
  const void* x;  // (outer, reduced, inner)
  void* y;        // (outer, inner), contiguous; int64 for sums of integers and bool, else of dtype
  int64_t outer, reduced, inner;
  int64_t outer_stride, reduced_stride, inner_stride;  // of x, in elements
  ReduceOp op;
  DType dtype;  // of x; kMean: floating
};

// How the CUDA rungs v1 and v2 divide the work: blocks of (columns, steps, rows) threads, each of which takes `width`
// neighbours at once, either along the reduced axis (along) or across the inner one.
struct ReducePlan {
  int width;
  bool along;
  int64_t column_count, step_count;         // the inner and the reduced axis, in units of what one thread takes
  int columns, steps, rows;                 // per block, powers of two
  int64_t column_tiles, row_tiles, splits;  // numbers of blocks; splits divide the reduced axis
};

ReducePlan reduce_v1_plan(const ReduceArgs&);
ReducePlan reduce_v2_plan(const ReduceArgs&);
// Bytes for the partial results [split, outer, inner] that a second kernel folds; 0 if there is only one split.
int64_t reduce_partial_bytes(const ReduceArgs&, const ReducePlan&);

bool reduce_cuda_v2_accepts(const ReduceArgs&, const Target&);
Footprint reduce_cuda_v1_footprint(const ReduceArgs&, const Target&);
Footprint reduce_cuda_v2_footprint(const ReduceArgs&, const Target&);

void reduce_cpu_v0_reference(const ReduceArgs&, Queue&);
ROOFLAB_PER_ISA(reduce_cpu_v1_simd, ReduceArgs)

[[gnu::weak]] void reduce_cuda_v0_reference(const ReduceArgs&, Queue&);
[[gnu::weak]] void reduce_cuda_v1_block_tree(const ReduceArgs&, Queue&);
[[gnu::weak]] void reduce_cuda_v2_vectorised(const ReduceArgs&, Queue&);

}  // namespace rooflab::kernels
