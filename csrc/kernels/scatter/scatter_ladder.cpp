// The ladder of scatter: see scatter.h for what it computes.
#include <algorithm>

#include "kernels/common/ladder.h"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {

using enum Device::Type;

void scatter_cpu_v0_reference(const ScatterArgs&, Queue&);
ROOFLAB_CUDA_RUNG(scatter_cuda_v0_reference, ScatterArgs)
ROOFLAB_CUDA_RUNG(scatter_cuda_v1_lines, ScatterArgs)

ScatterPlan scatter_plan(const ScatterArgs& args) {
  constexpr int kThreads = 256, kWarp = 32, kElements = 4;  // elements of a thread
  constexpr int64_t kPlaces = kSharedBytesOfAnyGpu / 4;
  ScatterPlan plan{};
  int dims = 0;  // along which the index counts
  for (int d = 0; d < args.at.ndim; ++d)
    if (args.y_strides[d] == 0) {
      plan.dim = d;
      ++dims;
    }
  if (dims != 1 || args.at.limit > kPlaces) return plan;
  const int last = args.at.ndim - 1;
  plan.across = plan.dim != last && args.at.sizes[last] > 1;
  const int64_t length = args.at.sizes[plan.dim], lines = args.at.count / length;
  // Where lines lie side by side, a warp's threads have one each. Else as many threads share one as it keeps busy.
  int64_t most = kWarp;
  if (!plan.across) most = std::clamp<int64_t>(kThreads * kElements / length, 1, kThreads / kWarp);
  for (plan.lines = 1; 2 * plan.lines <= std::min({most, lines, kPlaces / args.at.limit});) plan.lines *= 2;
  plan.blocks = (lines + plan.lines - 1) / plan.lines;
  return plan;
}

namespace {

Footprint scatter_cuda_v0_footprint(const ScatterArgs& args, const Target&) {
  if (args.in_any_order) return {.launches = 1};
  return {.launches = 3, .scratch_bytes = args.places * 4};
}

bool scatter_cuda_v1_accepts(const ScatterArgs& args, const Target&) { return scatter_plan(args).blocks > 0; }

// Where any order will do, a thread for each element is sooner done. A few blocks with much to do would take longer,
// and so would blocks that read a few lines side by side.
bool scatter_cuda_v1_by_default(const ScatterArgs& args, const Target&) {
  constexpr int64_t kEnoughBlocks = 64, kLittle = 2048;  // elements of a block
  constexpr int kFewLines = 4;
  const ScatterPlan plan = scatter_plan(args);
  if (args.in_any_order || (plan.across && plan.lines <= kFewLines)) return false;
  return plan.blocks >= kEnoughBlocks || args.at.count <= kLittle * plan.blocks;
}

}  // namespace

const Ladder<ScatterArgs> scatter_ladder(
    "scatter",
    {
        {"v1_lines", kCuda,
         "a block finds the last elements of its lines in shared memory; lines of up to 12288 places",
         scatter_cuda_v1_accepts, scatter_cuda_v1_lines, nullptr, scatter_cuda_v1_by_default},
        {"v0_reference", kCuda, "the last element for each place is found first, where values differ; a thread each",
         nullptr, scatter_cuda_v0_reference, scatter_cuda_v0_footprint},
        {"v0_reference", kCpu, "in order; threads share a dimension along which no two elements meet", nullptr,
         scatter_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
