// The ladder of scatter_add: see scatter_add.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/scatter_add/scatter_add.h"

namespace rooflab::kernels {

using enum Device::Type;

void scatter_add_cpu_v0_reference(const ScatterAddArgs&, Queue&);
void scatter_add_cpu_v1_parallel(const ScatterAddArgs&, Queue&);
ROOFLAB_CUDA_RUNG(scatter_add_cuda_v0_reference, ScatterAddArgs)
ROOFLAB_CUDA_RUNG(scatter_add_cuda_v1_shared, ScatterAddArgs)

namespace {

// Where many elements meet in each place.
bool scatter_add_cuda_v1_accepts(const ScatterAddArgs& args, const Target&) {
  return args.places <= kScatterAddShared && args.at.count >= 16 * args.places;
}

}  // namespace

// On the CPU elements with the same destination are added in their order: the same bits on every run. On a GPU both
// rungs end in atomic additions, whose order may differ.
const Ladder<ScatterAddArgs> scatter_add_ladder(
    "scatter_add",
    {
        {"v1_shared", kCuda, "a block adds up all sums in shared memory first; many elements and few places",
         scatter_add_cuda_v1_accepts, scatter_add_cuda_v1_shared},
        {"v0_reference", kCuda, "one thread per element, which adds to its place by an atomic addition", nullptr,
         scatter_add_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads share a dimension along which no two elements meet", nullptr,
         scatter_add_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, scatter_add_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
