// The ladder of searchsorted: see searchsorted.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/searchsorted/searchsorted.h"

namespace rooflab::kernels {

using enum Device::Type;

void searchsorted_cpu_v0_reference(const SearchsortedArgs&, Queue&);
ROOFLAB_CUDA_RUNG(searchsorted_cuda_v0_reference, SearchsortedArgs)

const Ladder<SearchsortedArgs> searchsorted_ladder(
    "searchsorted",
    {
        {"v0_reference", kCuda, "one thread per value", nullptr, searchsorted_cuda_v0_reference},
        {"v0_reference", kCpu, "all threads, a value at a time", nullptr, searchsorted_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
