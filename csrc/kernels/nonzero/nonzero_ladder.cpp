// The ladder of nonzero: see nonzero.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/nonzero/nonzero.h"

namespace rooflab::kernels {

using enum Device::Type;

void nonzero_cpu_v0_reference(const NonzeroArgs&, Queue&);
void nonzero_cpu_v1_portions(const NonzeroArgs&, Queue&);
ROOFLAB_CUDA_RUNG(nonzero_cuda_v0_reference, NonzeroArgs)
ROOFLAB_CUDA_RUNG(nonzero_cuda_v1_portions, NonzeroArgs)

namespace {

Footprint nonzero_cpu_v1_footprint(const NonzeroArgs& args, const Target&) {
  return {.scratch_bytes = args.places ? 8 * (args.portions + 1) : 0};
}

}  // namespace

const Ladder<NonzeroArgs> nonzero_ladder(
    "nonzero",
    {
        {"v1_portions", kCuda, "a block counts its portion, then writes from where the trues before it end", nullptr,
         nonzero_cuda_v1_portions},
        {"v0_reference", kCuda, "one warp: a vote says who comes before whom", nullptr, nonzero_cuda_v0_reference},
        {"v1_portions", kCpu, "all threads count their portions, then write; eight falses are skipped at once", nullptr,
         nonzero_cpu_v1_portions, nonzero_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, nonzero_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
