// The ladder of sort: see sort.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/sort/sort.h"

namespace rooflab::kernels {

using enum Device::Type;

Footprint sort_cpu_v0_footprint(const SortArgs&, const Target&);
Footprint sort_cpu_v1_footprint(const SortArgs&, const Target&);
Footprint sort_cpu_v2_footprint(const SortArgs&, const Target&);
Footprint sort_cpu_v3_footprint(const SortArgs&, const Target&);
void sort_cpu_v0_reference(const SortArgs&, Queue&);
void sort_cpu_v1_parallel(const SortArgs&, Queue&);
void sort_cpu_v2_packed(const SortArgs&, Queue&);
void sort_cpu_v3_radix(const SortArgs&, Queue&);
ROOFLAB_CUDA_RUNG(sort_cuda_v0_reference, SortArgs)
ROOFLAB_CUDA_RUNG(sort_cuda_v1_select, SortArgs)

namespace {

bool sort_cuda_v1_accepts(const SortArgs& args, const Target&) { return args.inner == 1 && args.keep * 8 <= args.n; }

// Elements of up to 32 bits, whose places fit into 32 bits, too.
bool sort_cpu_v2_accepts(const SortArgs& args, const Target&) {
  return size_of(args.dtype) <= 4 && args.n <= int64_t{1} << 32;
}

// Long lines: counting digits takes as long as comparing a few hundred elements.
bool sort_cpu_v3_accepts(const SortArgs& args, const Target& target) {
  constexpr int64_t kLong = 512;
  return sort_cpu_v2_accepts(args, target) && args.keep == args.n && args.n >= kLong;
}

}  // namespace

const Ladder<SortArgs> sort_ladder(
    "sort",
    {
        {"v1_select", kCuda,
         "one block per line finds one element per round; the last dimension, up to an eighth of it kept",
         sort_cuda_v1_accepts, sort_cuda_v1_select},
        {"v0_reference", kCuda, "one thread per element counts those before it: n^2 comparisons per line", nullptr,
         sort_cuda_v0_reference},
        {"v3_radix", kCpu, "packed lines are distributed by 8 bits at a time, without a comparison; long, all kept",
         sort_cpu_v3_accepts, sort_cpu_v3_radix, sort_cpu_v3_footprint},
        {"v2_packed", kCpu,
         "element and place are one integer of 64 bits, so a comparison is one instruction; up to 32 bits",
         sort_cpu_v2_accepts, sort_cpu_v2_packed, sort_cpu_v2_footprint},
        {"v1_parallel", kCpu, "all threads, a line each", nullptr, sort_cpu_v1_parallel, sort_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, a line at a time", nullptr, sort_cpu_v0_reference, sort_cpu_v0_footprint},
    },
    {"sort", "topk"});

}  // namespace rooflab::kernels
