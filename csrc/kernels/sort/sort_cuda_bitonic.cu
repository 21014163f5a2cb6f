// The bitonic rung of sort on the GPU: see sort.h for what it computes.
#include <algorithm>
#include <bit>

#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/sort/sort_cuda_packed.cuh"

namespace rooflab::kernels {
namespace {

constexpr int64_t kEnoughBlocks = 1056;  // 8 for each multiprocessor of an H100; with fewer chunks, each has a block

// One pass over all lines, each cut into chunks that a block sorts. Of every chunk the first args.keep items go on to
// the next pass; the last pass has one chunk per line, and writes the result.
struct BitonicPass {
  const int64_t* from;  // (lines, count): the places in x of the items that are left; null at first, when all are
  int64_t* to;          // (lines, next_count); null in the last pass
  int64_t count, next_count, chunks;  // per line
  int size, size_bits;                // of a chunk, a power of two
  int groups;                         // chunks that a block sorts at once
  int bytes;                          // of an element
};

// Where an item lies: the gaps keep items that are a power of two apart in different banks.
__device__ __forceinline__ int slot_of(int item) { return item + item / kWarp; }

// kSteps steps of the network at once, with 2^kSteps items in registers: comparisons of items that are low << kSteps -
// 1,
// ..., low << 1 and low apart. Groups of `merged` items come in ascending and descending order by turns.
template <int kSteps, class Item>
__device__ __forceinline__ void compare(Item* items, int count, int low, int merged, bool all_ascend) {
  constexpr int kItems = 1 << kSteps;
  __syncthreads();
  for (int group = threadIdx.x; group < count / kItems; group += kThreads) {
    const int in_low = group & (low - 1), first = (group - in_low) * kItems + in_low;
    const bool ascends = all_ascend || (first & merged) == 0;
    Item own[kItems];
#pragma unroll
    for (int i = 0; i < kItems; ++i) own[i] = items[slot_of(first + i * low)];
#pragma unroll
    for (int distance = kItems / 2; distance > 0; distance /= 2)
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (i & distance) continue;
        const Item a = own[i], b = own[i + distance];
        const bool swaps = is_before(b, a) == ascends;
        own[i] = swaps ? b : a;
        own[i + distance] = swaps ? a : b;
      }
#pragma unroll
    for (int i = 0; i < kItems; ++i) items[slot_of(first + i * low)] = own[i];
  }
}

// Sorts every group of `size` neighbours, by merging groups of 2, 4, 8, ...: a bitonic network.
template <class Item>
__device__ __forceinline__ void sort_groups(Item* items, int count, int size) {
  for (int merged = 2; merged <= size; merged *= 2) {
    for (int distance = merged / 2; distance > 0;) {
      const bool all_ascend = merged == size;
      if (distance >= 4) {
        compare<3>(items, count, distance / 4, merged, all_ascend);
        distance /= 8;
      } else if (distance == 2) {
        compare<2>(items, count, 1, merged, all_ascend);
        distance = 0;
      } else {
        compare<1>(items, count, 1, merged, all_ascend);
        distance = 0;
      }
    }
  }
  __syncthreads();
}

template <class Item>
__global__ void __launch_bounds__(kThreads)
    sort_cuda_v2_bitonic_kernel(const __grid_constant__ SortArgs args, const __grid_constant__ BitonicPass pass) {
  __shared__ Item items[kSortChunk + kSortChunk / kWarp];
  wait_for_previous_kernel();
  const int64_t all_chunks = args.outer * args.inner * pass.chunks;
  const int groups = pass.groups;
  // Calls body(slot, line, chunk, number) for every item that this block holds: from chunk `first` of all lines on.
  const auto for_each = [&](int64_t first, const auto& body) {
    const int count = static_cast<int>(min(int64_t{groups}, all_chunks - first)) * pass.size;
    for (int slot = threadIdx.x; slot < count; slot += kThreads) {
      const int number = slot & (pass.size - 1);
      int64_t chunk = 0, line = first + (slot >> pass.size_bits);
      if (pass.chunks > 1) line = divide(line, pass.chunks, chunk);
      body(slot, line, chunk, number);
    }
    return count;
  };
  for (int64_t first = blockIdx.x * int64_t{groups}; first < all_chunks; first += gridDim.x * int64_t{groups}) {
    const auto place_of = [&](int64_t line, int64_t at) { return pass.from ? pass.from[line * pass.count + at] : at; };
    const int count = for_each(first, [&](int slot, int64_t line, int64_t chunk, int number) {
      const int64_t at = chunk * pass.size + number;
      items[slot_of(slot)] = at < pass.count
                                 ? pack<Item>(Line(args, pass.bytes, line).key(args, place_of(line, at)), number)
                                 : last_item<Item>();
    });
    sort_groups(items, count, pass.size);
    for_each(first, [&](int slot, int64_t line, int64_t chunk, int rank) {
      const int64_t begin = chunk * pass.size;
      if (rank >= args.keep || begin + rank >= pass.count) return;
      const int64_t place = place_of(line, begin + place_in(items[slot_of(slot)]));
      if (pass.to)
        pass.to[line * pass.next_count + chunk * args.keep + rank] = place;
      else
        Line(args, pass.bytes, line).write(args, rank, place);
    });
    __syncthreads();
  }
}

}  // namespace

void sort_cuda_v2_bitonic(const SortArgs& args, Queue& queue) {
  const int64_t lines = args.outer * args.inner;
  int64_t* left = queue.scratch<int64_t>(lines * (sort_left_after(args, 1) + sort_left_after(args, 2)));
  int64_t* buffers[] = {left, left + lines * sort_left_after(args, 1)};
  int64_t count = args.n;
  for (int number = 0; count > 0; ++number) {
    const int size = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min(count, kSortChunk))));
    const int64_t chunks = blocks_of(count, size), most = kSortChunk / size;
    const int64_t groups = std::clamp<int64_t>(lines * chunks / kEnoughBlocks, 1, most);
    const int64_t next_count = sort_left_after(args, number + 1);
    const BitonicPass pass{number > 0 ? buffers[(number - 1) % 2] : nullptr,
                           next_count > 0 ? buffers[number % 2] : nullptr,
                           count,
                           next_count,
                           chunks,
                           size,
                           std::countr_zero(static_cast<unsigned>(size)),
                           static_cast<int>(groups),
                           static_cast<int>(size_of(args.dtype))};
    LaunchShape shape = a_block_each(blocks_of(lines * chunks, groups));
    shape.early = number > 0 && can_launch_early(queue);
    dispatch_item(args.dtype, kSortChunk,
                  [&]<class Item>() { queue.launch(sort_cuda_v2_bitonic_kernel<Item>, shape, args, pass); });
    count = next_count;
  }
}

}  // namespace rooflab::kernels
