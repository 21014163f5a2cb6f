// The ladder of ravel_index: see ravel_index.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/ravel_index/ravel_index.h"

namespace rooflab::kernels {

using enum Device::Type;

void ravel_index_cpu_v0_reference(const RavelIndexArgs&, Queue&);
ROOFLAB_CUDA_RUNG(ravel_index_cuda_v0_reference, RavelIndexArgs)

const Ladder<RavelIndexArgs> ravel_index_ladder(
    "ravel_index", {
                       {"v0_reference", kCuda, "one thread per place", nullptr, ravel_index_cuda_v0_reference},
                       {"v0_reference", kCpu, "all threads, a place at a time", nullptr, ravel_index_cpu_v0_reference},
                   });

}  // namespace rooflab::kernels
