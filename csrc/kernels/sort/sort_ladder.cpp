// The ladder of sort: see sort.h for what it computes.
#include <algorithm>

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
ROOFLAB_CUDA_RUNG(sort_cuda_v2_bitonic, SortArgs)
ROOFLAB_CUDA_RUNG(sort_cuda_v3_radix, SortArgs)
ROOFLAB_CUDA_RUNG(sort_cuda_v4_block_radix, SortArgs)
ROOFLAB_CUDA_RUNG(sort_cuda_v5_radix_select, SortArgs)

namespace {

bool sort_cuda_v1_accepts(const SortArgs& args, const Target&) { return args.inner == 1 && args.keep * 8 <= args.n; }

// A longer line loses seven eighths of its elements or more in each pass.
bool sort_cuda_v2_accepts(const SortArgs& args, const Target&) {
  return args.keep > 0 && (args.n <= kSortChunk || args.keep * 8 <= kSortChunk);
}

Footprint sort_cuda_v2_footprint(const SortArgs& args, const Target&) {
  Footprint footprint{.launches = 1};
  while (sort_left_after(args, footprint.launches) > 0) ++footprint.launches;
  footprint.scratch_bytes = args.outer * args.inner * 8 * (sort_left_after(args, 1) + sort_left_after(args, 2));
  return footprint;
}

bool sort_cuda_v4_accepts(const SortArgs& args, const Target&) {
  return args.keep > 0 && args.n <= kSortBlock && size_of(args.dtype) <= 4;
}

bool sort_cuda_v4_by_default(const SortArgs& args, const Target&) { return args.n > kSortShort; }

bool sort_cuda_v5_accepts(const SortArgs& args, const Target&) {
  return args.indices && args.keep > 0 && args.keep <= kSelectMost && args.n < int64_t{1} << 32;
}

// Many short lines are sorted sooner. A line that is read again for each digit has to be contiguous, and there have to
// be blocks enough.
bool sort_cuda_v5_by_default(const SortArgs& args, const Target&) {
  constexpr int64_t kShort = 128, kFew = 1056, kEnough = 16;  // elements; lines
  const int64_t lines = args.outer * args.inner;
  if (args.n <= (lines <= kFew ? kShort : kSortShort) || args.keep * 4 > args.n) return false;
  return args.n * size_of(args.dtype) <= kSelectBytes || (args.n_stride == 1 && lines >= kEnough);
}

// Places fit into the half of an item.
bool sort_cpu_v2_accepts(const SortArgs& args, const Target&) {
  return size_of(args.dtype) > 4 || args.n <= int64_t{1} << 32;
}

// Long lines of which much is kept: digits are counted for each byte of an element.
bool sort_cpu_v3_accepts(const SortArgs& args, const Target& target) {
  const int64_t long_enough = 24 * size_of(args.dtype);
  return sort_cpu_v2_accepts(args, target) && args.keep * 8 >= args.n && args.n >= long_enough;
}

bool sort_cpu_v3_by_default(const SortArgs& args, const Target&) { return args.keep > kSortFew; }

}  // namespace

int64_t sort_left_after(const SortArgs& args, int pass) {
  int64_t count = args.n;
  for (; pass > 0; --pass) {
    if (count <= kSortChunk) return 0;
    const int64_t whole = (count - 1) / kSortChunk;  // chunks before the last
    count = whole * args.keep + std::min(args.keep, count - whole * kSortChunk);
  }
  return count;
}

int64_t sort_portions(const SortArgs& args) {
  constexpr int64_t kMost = 1056;  // because a few threads add up the counts of a digit
  return std::min((args.n + kSortTile - 1) / kSortTile, kMost);
}

bool sort_packs_before(const SortArgs& args) { return args.n_stride != 1; }

int64_t sort_radix_bytes(const SortArgs& args) {
  const int64_t lines = args.outer * args.inner, size = size_of(args.dtype);
  const int64_t packed = size == 8 ? 16 : size <= 2 && args.n <= int64_t{1} << 16 ? 4 : 8;
  const int64_t item = args.indices ? packed : std::max<int64_t>(size, 2);
  return 2 * lines * args.n * item + lines * (sort_portions(args) + 1) * kSortDigits * 4;
}

bool sort_cuda_v3_accepts(const SortArgs& args, const Target&) {
  return args.keep > 0 && args.n > kSortChunk && args.n < int64_t{1} << 32;
}

Footprint sort_cuda_v3_footprint(const SortArgs& args, const Target&) {
  return {.launches = static_cast<int>(sort_packs_before(args) + 3 * size_of(args.dtype)),  // for each digit of 8 bits
          .scratch_bytes = sort_radix_bytes(args)};
}

const Ladder<SortArgs> sort_ladder(
    "sort",
    {
        {"v5_radix_select", kCuda,
         "the last of up to 256 elements is found by digits in shared memory; only what comes up to it is put in order",
         sort_cuda_v5_accepts, sort_cuda_v5_radix_select, nullptr, sort_cuda_v5_by_default},
        {"v4_block_radix", kCuda,
         "a block keeps a line of up to 4096 packed elements of up to 4 bytes in shared memory, and orders it digit by "
         "digit",
         sort_cuda_v4_accepts, sort_cuda_v4_block_radix, nullptr, sort_cuda_v4_by_default},
        {"v2_bitonic", kCuda,
         "a block sorts 2048 packed elements by a network in shared memory; few of a longer line, chunk by chunk",
         sort_cuda_v2_accepts, sort_cuda_v2_bitonic, sort_cuda_v2_footprint},
        {"v3_radix", kCuda,
         "blocks count digits of 8 bits, then move packed elements to their places, without a comparison; long lines",
         sort_cuda_v3_accepts, sort_cuda_v3_radix, sort_cuda_v3_footprint},
        {"v1_select", kCuda,
         "one block per line finds one element per round; the last dimension, up to an eighth of it kept",
         sort_cuda_v1_accepts, sort_cuda_v1_select},
        {"v0_reference", kCuda, "one thread per element counts those before it: n^2 comparisons per line", nullptr,
         sort_cuda_v0_reference},
        {"v3_radix", kCpu,
         "packed lines are distributed by 8 bits at a time, without a comparison; long, an eighth or more kept",
         sort_cpu_v3_accepts, sort_cpu_v3_radix, sort_cpu_v3_footprint, sort_cpu_v3_by_default},
        {"v2_packed", kCpu,
         "element and place are one integer, so a comparison is one instruction or two, and reads no other memory",
         sort_cpu_v2_accepts, sort_cpu_v2_packed, sort_cpu_v2_footprint},
        {"v1_parallel", kCpu, "all threads, a line each", nullptr, sort_cpu_v1_parallel, sort_cpu_v1_footprint},
        {"v0_reference", kCpu, "one thread, a line at a time", nullptr, sort_cpu_v0_reference, sort_cpu_v0_footprint},
    },
    {"sort", "topk"});

}  // namespace rooflab::kernels
