// The ladder of median: see median.h for what it computes.
#include <algorithm>

#include "kernels/common/ladder.h"
#include "kernels/median/median.h"

namespace rooflab::kernels {

using enum Device::Type;

Footprint median_cpu_v0_footprint(const MedianArgs&, const Target&);
Footprint median_cpu_v1_footprint(const MedianArgs&, const Target&);
void median_cpu_v0_reference(const MedianArgs&, Queue&);
void median_cpu_v1_select(const MedianArgs&, Queue&);
ROOFLAB_CUDA_RUNG(median_cuda_v0_reference, MedianArgs)
ROOFLAB_CUDA_RUNG(median_cuda_v1_radix_sort, MedianArgs)
ROOFLAB_CUDA_RUNG(median_cuda_v2_bits, MedianArgs)

namespace {

bool median_cuda_v2_accepts(const MedianArgs& args, const Target&) {
  return args.n * size_of(args.dtype) <= kMedianBytes;
}

bool median_cuda_v1_accepts(const MedianArgs& args, const Target& target) { return sort_cuda_v3_accepts(args, target); }

Footprint median_cuda_v1_footprint(const MedianArgs& args, const Target& target) {
  const SortArgs sorted = median_lines_to_sort(args);
  Footprint footprint = sort_cuda_v3_footprint(sorted, target);
  ++footprint.launches;
  footprint.scratch_bytes += args.outer * args.inner * args.n * (size_of(args.dtype) + 8);
  return footprint;
}

}  // namespace

SortArgs median_lines_to_sort(const MedianArgs& args) {
  SortArgs sorted = args;
  sorted.keep = args.n;
  return sorted;
}

const Ladder<MedianArgs> median_ladder(
    "median",
    {
        {"v2_bits", kCuda,
         "the middle is found bit by bit: how many elements are below a trial; a warp or a block for lines of 32 KiB",
         median_cuda_v2_accepts, median_cuda_v2_bits},
        {"v1_radix_sort", kCuda, "lines are sorted with their positions, then a thread for each takes the middle",
         median_cuda_v1_accepts, median_cuda_v1_radix_sort, median_cuda_v1_footprint},
        {"v0_reference", kCuda, "one thread per element counts those before it: n^2 comparisons per line", nullptr,
         median_cuda_v0_reference},
        {"v1_select", kCpu, "all threads; elements as integers are divided until the middle one is in place", nullptr,
         median_cpu_v1_select, median_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread sorts the positions of a line at a time", nullptr, median_cpu_v0_reference,
         median_cpu_v0_footprint},
    });

}  // namespace rooflab::kernels
