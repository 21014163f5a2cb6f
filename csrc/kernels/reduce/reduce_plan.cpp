// What the CUDA rungs of reduce accept and start, on a target that need not be present.
#include <algorithm>
#include <bit>

#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {
namespace {

// Whether v2 can take 16 bytes at a time along the reduced axis, or across the inner one.
bool vectorises(const ReduceArgs& args, bool along) {
  if (args.dtype != DType::kFloat32 && args.dtype != DType::kFloat16 && args.dtype != DType::kBFloat16) return false;
  const int64_t width = 16 / size_of(args.dtype);
  const auto whole = [&](int64_t stride, int64_t size) { return size == 1 || stride % width == 0; };
  if (!is_aligned(args.x) || !whole(args.outer_stride, args.outer)) return false;
  if (along) return args.inner == 1 && args.reduced_stride == 1 && args.reduced >= width;
  return args.inner_stride == 1 && args.inner % width == 0 && whole(args.reduced_stride, args.reduced);
}

ReducePlan plan_of(const ReduceArgs& args, int width, bool along) {
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

Footprint footprint(const ReduceArgs& args, const ReducePlan& plan) {
  return {.launches = plan.splits > 1 ? 2 : 1, .scratch_bytes = reduce_partial_bytes(args, plan)};
}

}  // namespace

int64_t reduce_partial_bytes(const ReduceArgs& args, const ReducePlan& plan) {
  const bool is_extreme = args.op == ReduceOp::kMax || args.op == ReduceOp::kMin;
  const bool is_narrow = is_extreme && is_floating(args.dtype) && args.dtype != DType::kFloat64;  // kept in float
  return plan.splits > 1 ? plan.splits * args.outer * args.inner * (is_narrow ? 4 : 8) : 0;
}

ReducePlan reduce_v1_plan(const ReduceArgs& args) { return plan_of(args, 1, false); }
ReducePlan reduce_v2_plan(const ReduceArgs& args) {
  return plan_of(args, 16 / static_cast<int>(size_of(args.dtype)), vectorises(args, true));
}

bool reduce_cuda_v2_accepts(const ReduceArgs& args, const Target&) {
  return vectorises(args, true) || vectorises(args, false);
}

Footprint reduce_cuda_v1_footprint(const ReduceArgs& args, const Target&) {
  return footprint(args, reduce_v1_plan(args));
}
Footprint reduce_cuda_v2_footprint(const ReduceArgs& args, const Target&) {
  return footprint(args, reduce_v2_plan(args));
}

}  // namespace rooflab::kernels
