// The ladder of arange: see arange.h for what it computes.
#include "kernels/arange/arange.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void arange_cpu_v0_reference(const ArangeArgs&, Queue&);
ROOFLAB_CUDA_RUNG(arange_cuda_v0_reference, ArangeArgs)

const Ladder<ArangeArgs> arange_ladder(
    "arange",
    {
        {"v0_reference", kCuda, "one thread per element", nullptr, arange_cuda_v0_reference},
        {"v0_reference", kCpu, "all threads, a loop for each dtype", nullptr, arange_cpu_v0_reference},
    },
    {"arange", "linspace"});

}  // namespace rooflab::kernels
