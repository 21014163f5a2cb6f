// The ladder of reduce, and how its CUDA rungs divide the work: see reduce.h for what it computes.
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
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// NVIDIA H100 80GB HBM3, driver 580.159.04, CUDA 13.0, 2026-11-27, rooflab 0.2.0, torch 2.11.0:
//                  16384x4096  16384x4096  16384x4096  16384x4096  16384x4096  16384x4096
//                        rows     columns         all        rows     columns         all
//                    bfloat16    bfloat16    bfloat16     float32     float32     float32
//                   % of copy   % of copy   % of copy   % of copy   % of copy   % of copy
//   v0_reference           16         2.5      0.0027          26         5.4      0.0034
//   v1_block_tree          51          61          60          83          88          86
//   v2_vectorised          87          84          91         104          96         100
//   torch                  98          78          92          98          91          99
//   copy, GB/s           2804        2782        2808        2913        2911        2904
//   Rungs that only read, or whose stores bypass the cache, can move more bytes per second than a copy.
// [end measured]
#include <algorithm>
#include <bit>

#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {

using enum Device::Type;

void reduce_cpu_v0_reference(const ReduceArgs&, Queue&);
ROOFLAB_PER_ISA(reduce_cpu_v1_simd, ReduceArgs)
ROOFLAB_CUDA_RUNG(reduce_cuda_v0_reference, ReduceArgs)
ROOFLAB_CUDA_RUNG(reduce_cuda_v1_block_tree, ReduceArgs)
ROOFLAB_CUDA_RUNG(reduce_cuda_v2_vectorised, ReduceArgs)

namespace {

bool has_vectors(DType dtype) { return dtype == DType::kBool || (is_floating(dtype) && dtype != DType::kFloat64); }

// Whether v2 can walk along the reduced axis, 16 bytes at a time. Rows may begin anywhere.
bool is_row(const ReduceArgs& args) {
  return args.inner == 1 && args.reduced_stride == 1 && args.reduced >= 16 / size_of(args.dtype);
}

// How many neighbouring outputs a thread of v2 can take, in 16 bytes or in 4; 1 if it cannot. Of a variance it takes
// two, because each needs many registers.
int width_of_columns(const ReduceArgs& args) {
  const int64_t size = size_of(args.dtype);
  for (const int64_t width : {is_spread(args.op) ? 2 : 16 / size, 4 / size}) {
    const auto whole = [&](int64_t stride, int64_t count) { return count == 1 || stride % width == 0; };
    if (width > 1 && is_aligned(args.x, width * size) && args.inner_stride == 1 && args.inner % width == 0 &&
        whole(args.outer_stride, args.outer) && whole(args.reduced_stride, args.reduced))
      return static_cast<int>(width);
  }
  return 1;
}

ReducePlan plan_of(const ReduceArgs& args, int width, bool along) {
  constexpr int64_t kThreads = 256, kEnoughBlocks = 528, kStepsOfThread = 32;
  constexpr int64_t kStepsOfSplit = 16, kStepsOfFew = 4, kFewOutputs = 64, kMostRows = 64;
  constexpr int64_t kLongRow = 1024;  // vectors
  constexpr int64_t kMostSteps = 64;  // that a thread adds one after another
  constexpr int64_t kEnoughThreads = 65536;
  constexpr int64_t kMostSplits = 65535;
  const auto power = [](int64_t count, int64_t most) {
    return static_cast<int>(
        std::min(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(count, most))))));
  };
  ReducePlan plan{};
  plan.width = width;
  plan.along = along;
  plan.column_count = along ? 1 : args.inner / width;
  plan.step_count = along ? args.reduced / width : args.reduced;
  // Columns that would leave an eighth of their warps idle lie side by side with those of the next step.
  const int64_t lanes = (plan.column_count + 31) / 32 * 32;
  const bool is_ragged = plan.column_count <= kThreads / 2 && (lanes - plan.column_count) * 8 > lanes;
  plan.columns = is_ragged ? static_cast<int>(plan.column_count) : power(plan.column_count, 32);
  // Where there is little to do, all of it is done at once, or in two vectors of a row.
  const int64_t loads = args.outer * plan.column_count * plan.step_count;
  const int64_t steps_of_thread = std::clamp<int64_t>(loads / kEnoughThreads, along ? 2 : 1, kStepsOfThread);
  plan.steps = std::bit_floor(
      static_cast<unsigned>(power(std::max<int64_t>(plan.step_count / steps_of_thread, 1), kThreads / plan.columns)));
  if (along) {
    // Up to 32 lanes share a row without a barrier, and a block has several such rows. A row that needs more threads
    // has a block of its own, but a short one that needs fewer than 64 does with 32.
    if (plan.step_count < kLongRow && plan.steps == 64 && plan.step_count / steps_of_thread < 64) plan.steps = 32;
    plan.rows = plan.steps > 32 ? 1 : static_cast<int>(kThreads) / plan.steps;
  } else {
    plan.rows = power(args.outer, std::min(kThreads / (plan.columns * plan.steps), kMostRows));
  }
  while (plan.columns * plan.steps * plan.rows < kThreads && plan.columns < plan.column_count) plan.columns *= 2;
  plan.column_tiles = (plan.column_count + plan.columns - 1) / plan.columns;
  plan.row_tiles = (args.outer + plan.rows - 1) / plan.rows;
  // A second launch has to be worth it. Where it adds up few outputs, many parts cost it little more than few; where
  // these are columns and many, it costs the most. Rows of which a block has several are many, too.
  const bool is_few = args.outer * args.inner <= kFewOutputs;
  const int64_t fewest = args.inner > 1 && !is_few ? 3 : 2;  // parts
  const bool shares_block = along && plan.rows > 1;
  const bool is_split = !shares_block && plan.step_count >= plan.steps * fewest * kStepsOfSplit;
  const int64_t steps_of_split = is_few ? kStepsOfFew : kStepsOfSplit;
  const int64_t most = is_split ? plan.step_count / (plan.steps * steps_of_split) : 1;
  plan.splits = std::clamp(kEnoughBlocks / std::max<int64_t>(plan.column_tiles * plan.row_tiles, 1), int64_t{1}, most);
  if ((args.op == ReduceOp::kSum || args.op == ReduceOp::kMean) && is_floating(args.dtype))
    plan.splits =
        std::max(plan.splits,
                 std::min((plan.step_count + plan.steps * kMostSteps - 1) / (plan.steps * kMostSteps), kMostSplits));
  return plan;
}

}  // namespace

int64_t reduce_partial_bytes(const ReduceArgs& args, const ReducePlan& plan) {
  const bool is_extreme = args.op == ReduceOp::kMax || args.op == ReduceOp::kMin || is_truth(args.op);
  const bool in_float = is_floating(args.dtype) && args.dtype != DType::kFloat64;
  const bool is_narrow = is_extreme && (in_float || args.dtype == DType::kBool);
  const int64_t bytes = is_spread(args.op) ? 24 : is_narrow || is_truth(args.op) ? 4 : 8;
  return plan.splits > 1 ? plan.splits * args.outer * args.inner * bytes : 0;
}

ReducePlan reduce_v1_plan(const ReduceArgs& args) { return plan_of(args, 1, false); }
ReducePlan reduce_v2_plan(const ReduceArgs& args) {
  if (is_row(args)) return plan_of(args, 16 / static_cast<int>(size_of(args.dtype)), true);
  return plan_of(args, width_of_columns(args), false);
}

namespace {

Footprint footprint(const ReduceArgs& args, const ReducePlan& plan) {
  return {.launches = plan.splits > 1 ? 2 : 1, .scratch_bytes = reduce_partial_bytes(args, plan)};
}

bool reduce_cuda_v2_accepts(const ReduceArgs& args, const Target&) {
  return has_vectors(args.dtype) && (is_row(args) || width_of_columns(args) > 1);
}

Footprint reduce_cuda_v1_footprint(const ReduceArgs& args, const Target&) {
  return footprint(args, reduce_v1_plan(args));
}

Footprint reduce_cuda_v2_footprint(const ReduceArgs& args, const Target&) {
  return footprint(args, reduce_v2_plan(args));
}

}  // namespace

const Ladder<ReduceArgs> reduce_ladder(
    "reduce",
    {
        {"v2_vectorised", kCuda,
         "rows by 16 bytes, wherever they begin; aligned columns by 4 to 16 bytes; float32, 16 bits and bool",
         reduce_cuda_v2_accepts, reduce_cuda_v2_vectorised, reduce_cuda_v2_footprint},
        {"v1_block_tree", kCuda,
         "a block shares the reduced axis and folds in shared memory; where outputs are few, blocks share it too",
         nullptr, reduce_cuda_v1_block_tree, reduce_cuda_v1_footprint},
        {"v0_reference", kCuda, "one thread per output, in double", nullptr, reduce_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads; the axis in pieces, whose sums are added in order in double", nullptr,
         reduce_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, reduce_cpu_v0_reference},
    },
    {"sum", "mean", "amax", "amin", "var", "std", "prod", "any", "all"});

}  // namespace rooflab::kernels
