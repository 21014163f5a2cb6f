// reduce: sum, mean or maximum over one axis, with the input viewed as (outer, reduced, inner); several adjacent axes,
// or all, merge into one. y[o, i] = sum_k x[o, k, i]  (or mean, or max; a NaN is the maximum of everything).
// Accumulated in float (double for float64, int64 for integers and bool); the order of additions depends on the shape
// alone, so a result is the same on every run and for any number of threads.
//
// Ladder, CUDA; on an H200, TB/s read of 67 M elements, bfloat16 / float32:    one sum     16384 rows   4096 columns
//   v0 reference   one thread an output
//   v1 block tree  a block shares the reduced axis and folds its sums in
//                  shared memory; where outputs are few the axis is also
//                  split over blocks, and a second kernel folds their parts  1.2 / 3.7    1.0 / 3.3     1.2 / 3.8
//   v2 vectorised  the same with 16-byte loads, along the reduced axis or
//                  across the outputs, whichever is contiguous               3.2 / 3.7    3.5 / 3.9     3.0 / 3.6
// Ladder, CPU; two Zen 3 cores with AVX2, float32, GB/s read where memcpy reads and writes 31:
//   v0 reference   one thread, plain loops
//   v1 simd        SIMD, all threads; the axis is cut into pieces whose
//                  sums are folded in order in double                           32           33            22
//
// FLOPs: 1 an input element. Compulsory bytes: each input element read once, each output written once.
// Roof: memory bandwidth.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/device.h"
#include "core/dtype.h"
#include "kernels/common/cpu_isa.h"

namespace rooflab::kernels {

enum class ReduceOp : uint8_t { kSum, kMean, kMax };

struct ReduceArgs {
  const void* x;  // (outer, reduced, inner)
  void* y;        // (outer, inner), contiguous; int64 for sums of integers and bool, else of dtype
  int64_t outer, reduced, inner;
  int64_t outer_stride, reduced_stride, inner_stride;  // of x, in elements
  ReduceOp op;
  DType dtype;  // of x; kMean: floating
};

// How the CUDA rungs v1 and v2 deal the work: blocks of (columns, steps, rows) threads, of which each takes `width`
// neighbours at once, either along the reduced axis (along) or across the inner one.
struct ReducePlan {
  int width;
  bool along;
  int64_t column_count, step_count;         // inner and reduced axis in units of what one thread takes
  int columns, steps, rows;                 // of a block, powers of two
  int64_t column_tiles, row_tiles, splits;  // blocks; splits divide the reduced axis
};

inline ReducePlan plan_reduce(const ReduceArgs& args, int width, bool along) {
  constexpr int64_t kThreads = 256, kEnoughBlocks = 1024, kStepsOfThread = 8, kStepsWorthSplitting = 16, kMostRows = 64;
  const auto power = [](int64_t count, int64_t most) {
    return static_cast<int>(
        std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(count, most))))));
  };
  ReducePlan plan{};
  plan.width = width;
  plan.along = along;
  plan.column_count = along ? 1 : args.inner / width;
  plan.step_count = along ? args.reduced / width : args.reduced;
  plan.columns = power(plan.column_count, 32);
  plan.steps = power(std::max<int64_t>(plan.step_count / kStepsOfThread, 1), kThreads / plan.columns);
  plan.rows = power(args.outer, std::min(kThreads / (plan.columns * plan.steps), kMostRows));
  plan.column_tiles = (plan.column_count + plan.columns - 1) / plan.columns;
  plan.row_tiles = (args.outer + plan.rows - 1) / plan.rows;
  const int64_t most = plan.step_count / (plan.steps * kStepsWorthSplitting);
  plan.splits = std::clamp(kEnoughBlocks / std::max<int64_t>(plan.column_tiles * plan.row_tiles, 1), int64_t{1},
                           std::max<int64_t>(most, 1));
  return plan;
}

// Whether v2 can take 16 bytes at a time along the reduced axis, or across the inner one.
inline bool reduce_vectorises(const ReduceArgs& args, bool along) {
  if (args.dtype != DType::kFloat32 && args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  const int64_t width = 16 / size_of(args.dtype);
  const auto whole = [&](int64_t stride, int64_t size) { return size == 1 || stride % width == 0; };
  if (reinterpret_cast<uintptr_t>(args.x) % 16 != 0 || !whole(args.outer_stride, args.outer)) return false;
  if (along) return args.inner == 1 && args.reduced_stride == 1 && args.reduced >= width;
  return args.inner_stride == 1 && args.inner % width == 0 && whole(args.reduced_stride, args.reduced);
}

inline bool reduce_cuda_v2_accepts(const ReduceArgs& args) {
  return reduce_vectorises(args, true) || reduce_vectorises(args, false);
}

void reduce_cpu_v0_reference(const ReduceArgs&, Stream);
ROOFLAB_PER_ISA(reduce_cpu_v1_simd, ReduceArgs)

[[gnu::weak]] void reduce_cuda_v0_reference(const ReduceArgs&, Stream);
[[gnu::weak]] void reduce_cuda_v1_block_tree(const ReduceArgs&, Stream);
[[gnu::weak]] void reduce_cuda_v2_vectorised(const ReduceArgs&, Stream);

}  // namespace rooflab::kernels
