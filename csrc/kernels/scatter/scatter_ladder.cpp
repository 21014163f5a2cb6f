// The ladder of scatter: see scatter.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/scatter/scatter.h"

namespace rooflab::kernels {

using enum Device::Type;

void scatter_cpu_v0_reference(const ScatterArgs&, Queue&);
ROOFLAB_CUDA_RUNG(scatter_cuda_v0_reference, ScatterArgs)

namespace {

Footprint scatter_cuda_v0_footprint(const ScatterArgs& args, const Target&) {
  if (args.alike) return {.launches = 1};
  return {.launches = 3, .scratch_bytes = args.places * 4};
}

}  // namespace

const Ladder<ScatterArgs> scatter_ladder(
    "scatter",
    {
        {"v0_reference", kCuda, "the last element for each place is found first, where values differ; a thread each",
         nullptr, scatter_cuda_v0_reference, scatter_cuda_v0_footprint},
        {"v0_reference", kCpu, "in order; threads share a dimension along which no two elements meet", nullptr,
         scatter_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
