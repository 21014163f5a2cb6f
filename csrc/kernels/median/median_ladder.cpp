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
ROOFLAB_CUDA_RUNG(median_cuda_v3_radix_select, MedianArgs)

namespace {

bool median_cuda_v2_accepts(const MedianArgs& args, const Target&) {
  return args.n * size_of(args.dtype) <= kMedianBytes;
}

bool median_cuda_v3_accepts(const MedianArgs& args, const Target&) { return args.n < int64_t{1} << 32; }

// Many short lines take a warp each. All blocks share the sort of few long lines, and of long ones whose elements are
// not adjacent: v3 would read them again for each digit.
bool median_cuda_v3_by_default(const MedianArgs& args, const Target&) {
  constexpr int64_t kLong = 1 << 15, kFew = 16, kMany = 528;
  const int64_t lines = args.outer * args.inner;
  if (args.n <= kMedianShort) return lines <= kMany;
  if (args.n * size_of(args.dtype) <= kMedianBytes) return true;
  return args.n_stride == 1 && (args.n <= kLong || lines >= kFew);
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
        {"v3_radix_select", kCuda,
         "the middle is found by digits of 8 bits: how many elements have each; a block for each line",
         median_cuda_v3_accepts, median_cuda_v3_radix_select, nullptr, median_cuda_v3_by_default},
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
