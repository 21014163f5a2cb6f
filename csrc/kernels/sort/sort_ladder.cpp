// The ladder of sort: see sort.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/sort/sort.h"

namespace rooflab::kernels {

using enum Device::Type;

Footprint sort_cpu_v0_footprint(const SortArgs&, const Target&);
Footprint sort_cpu_v1_footprint(const SortArgs&, const Target&);
void sort_cpu_v0_reference(const SortArgs&, Queue&);
void sort_cpu_v1_parallel(const SortArgs&, Queue&);
ROOFLAB_CUDA_RUNG(sort_cuda_v0_reference, SortArgs)
ROOFLAB_CUDA_RUNG(sort_cuda_v1_select, SortArgs)

namespace {

bool sort_cuda_v1_accepts(const SortArgs& args, const Target&) { return args.inner == 1 && args.keep * 8 <= args.n; }

}  // namespace

const Ladder<SortArgs> sort_ladder(
    "sort",
    {
        {"v1_select", kCuda,
         "one block per line finds one element per round; the last dimension, up to an eighth of it kept",
         sort_cuda_v1_accepts, sort_cuda_v1_select},
        {"v0_reference", kCuda, "one thread per element counts those before it: n^2 comparisons per line", nullptr,
         sort_cuda_v0_reference},
        {"v1_parallel", kCpu, "all threads, a line each", nullptr, sort_cpu_v1_parallel, sort_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, a line at a time", nullptr, sort_cpu_v0_reference, sort_cpu_v0_footprint},
    },
    {"sort", "topk"});

}  // namespace rooflab::kernels
