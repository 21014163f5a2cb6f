// The ladder of arg_reduce: see arg_reduce.h for what it computes.
#include <algorithm>
#include <bit>

#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void arg_reduce_cpu_v0_reference(const ArgReduceArgs&, Queue&);
void arg_reduce_cpu_v1_parallel(const ArgReduceArgs&, Queue&);
ROOFLAB_PER_ISA(arg_reduce_cpu_v2_simd, ArgReduceArgs)
ROOFLAB_CUDA_RUNG(arg_reduce_cuda_v0_reference, ArgReduceArgs)
ROOFLAB_CUDA_RUNG(arg_reduce_cuda_v1_block, ArgReduceArgs)
ROOFLAB_CUDA_RUNG(arg_reduce_cuda_v2_shared_axis, ArgReduceArgs)

namespace {

bool arg_reduce_cpu_v2_accepts(const ArgReduceArgs& args, const Target&) {
  return is_floating(args.dtype) && args.inner == 1 && args.reduced_stride == 1;
}

// Lines so short that sharing one is more work than reading it.
bool is_work_of_one_thread(const ArgReduceArgs& args) {
  constexpr int64_t kRow = 8, kColumn = 4;  // elements
  return args.reduced <= (args.inner == 1 ? kRow : kColumn);
}

bool arg_reduce_cuda_v1_accepts(const ArgReduceArgs& args, const Target&) {
  return args.inner == 1 && !is_work_of_one_thread(args);
}

bool arg_reduce_cuda_v2_accepts(const ArgReduceArgs& args, const Target&) { return !is_work_of_one_thread(args); }

Footprint arg_reduce_cuda_v2_footprint(const ArgReduceArgs& args, const Target&) {
  const int64_t splits = arg_reduce_plan(args).splits;
  if (splits == 1) return {.launches = 1};
  return {.launches = 2, .scratch_bytes = args.outer * args.inner * splits * kArgReducePlaceBytes};
}

}  // namespace

ArgReducePlan arg_reduce_plan(const ArgReduceArgs& args) {
  constexpr int64_t kThreads = 256, kEnoughBlocks = 528, kMostColumns = 32, kMostRows = 64, kMostSplits = 1024;
  constexpr int64_t kStepsOfThread = 32;  // loads
  constexpr int64_t kEnoughThreads = 65536;
  const auto power = [](int64_t count, int64_t most) {
    return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(count, 1, most))));
  };
  ArgReducePlan plan{};
  plan.along = args.inner == 1 && args.reduced_stride == 1;
  const int64_t width = plan.along ? 16 / size_of(args.dtype) : 1, steps = (args.reduced + width - 1) / width;
  plan.columns = power(args.inner, kMostColumns);
  // Where there is little to do, all of it is done at once.
  const int64_t steps_of_thread =
      std::clamp<int64_t>(args.outer * args.inner * steps / kEnoughThreads, 1, kStepsOfThread);
  const int64_t fewest = plan.along ? std::min<int64_t>(steps / 4, 4) : 1;  // threads, which read neighbouring words
  plan.steps = power(std::max(steps / steps_of_thread, fewest), kThreads / plan.columns);
  plan.rows = power(args.outer, std::min(kThreads / (plan.columns * plan.steps), kMostRows));
  while (plan.columns * plan.steps * plan.rows < kThreads && plan.columns < args.inner) plan.columns *= 2;
  plan.column_tiles = (args.inner + plan.columns - 1) / plan.columns;
  plan.row_tiles = (args.outer + plan.rows - 1) / plan.rows;
  const int64_t wanted = kEnoughBlocks / std::max<int64_t>(plan.column_tiles * plan.row_tiles, 1);
  const int64_t worth_splitting = plan.along ? 2 : 16;  // steps of a thread
  plan.splits = std::clamp<int64_t>(std::min(wanted, steps / (plan.steps * worth_splitting)), 1, kMostSplits);
  return plan;
}

const Ladder<ArgReduceArgs> arg_reduce_ladder(
    "arg_reduce",
    {
        {"v2_shared_axis", kCuda,
         "narrow rows share a block, and blocks share a long one; 16-byte loads along a contiguous axis; any layout, "
         "rows of 9 elements or more, columns of 5",
         arg_reduce_cuda_v2_accepts, arg_reduce_cuda_v2_shared_axis, arg_reduce_cuda_v2_footprint},
        {"v1_block", kCuda,
         "one block per output, which folds pairs of value and position; the last dimension, 9 elements or more",
         arg_reduce_cuda_v1_accepts, arg_reduce_cuda_v1_block},
        {"v0_reference", kCuda, "one thread per output, which is the fastest for shorter rows and columns", nullptr,
         arg_reduce_cuda_v0_reference},
        {"v2_simd", kCpu, "the extreme number by vectors, then its place; short rows side by side; adjacent floats",
         arg_reduce_cpu_v2_accepts, arg_reduce_cpu_v2_simd},
        {"v1_parallel", kCpu,
         "all threads; neighbouring outputs walk the axis together, a single output is reduced in vectors", nullptr,
         arg_reduce_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, one output at a time", nullptr, arg_reduce_cpu_v0_reference},
    },
    {"argmax", "argmin", "max", "min"});

}  // namespace rooflab::kernels
