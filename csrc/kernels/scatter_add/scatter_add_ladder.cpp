// The ladder of scatter_add: see scatter_add.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/scatter_add/scatter_add.h"

namespace rooflab::kernels {

using enum Device::Type;

void scatter_add_cpu_v0_reference(const ScatterAddArgs&, Queue&);
void scatter_add_cpu_v1_parallel(const ScatterAddArgs&, Queue&);
ROOFLAB_CUDA_RUNG(scatter_add_cuda_v0_reference, ScatterAddArgs)

// On the CPU elements with the same destination are added in their order: the same bits on every run.
const Ladder<ScatterAddArgs> scatter_add_ladder(
    "scatter_add",
    {
        {"v0_reference", kCuda,
         "one thread per element, atomic additions: the order, and so the last bits, may differ between runs", nullptr,
         scatter_add_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads share a dimension along which no two elements meet", nullptr,
         scatter_add_cpu_v1_parallel},
        {"v0_reference", kCpu, "one thread, an element at a time", nullptr, scatter_add_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
