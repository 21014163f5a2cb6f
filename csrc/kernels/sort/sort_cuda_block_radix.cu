// The rung of sort by digits within a block: see sort.h for what it computes. A block keeps a line in shared memory,
// and puts it in order of one digit after the other, the lowest first. Each element is read from memory once.
#include "core/architecture.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/sort/sort_cuda_digits.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kItemsOfLane = 8;
// The threads that a multiprocessor is to hold at once: their number limits the registers of each.
#ifdef ROOFLAB_SM80
constexpr int kThreadsOfMultiprocessor = 1536;  // 40 registers for each
#else
constexpr int kThreadsOfMultiprocessor = 1024;  // as many as Turing's holds
#endif

template <class Item, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock, kThreadsOfMultiprocessor / kThreadsOfBlock)
    sort_cuda_v4_block_radix_kernel(const __grid_constant__ SortArgs args, int bytes) {
  constexpr int kWarps = kThreadsOfBlock / kWarp;
  __shared__ uint16_t counts[kWarps][kDigits + 1];  // the last column is for lanes past the end
  __shared__ uint32_t of_warps[kWarps];
  __shared__ Item ordered[kThreadsOfBlock * kItemsOfLane];
  // The warps share the line evenly, in whole rounds.
  const int n = static_cast<int>(args.n), rounds = (n + kThreadsOfBlock - 1) / kThreadsOfBlock;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, first = warp * rounds * kWarp + lane;
  const auto is_inside = [&](int round) { return round < rounds && first + round * kWarp < n; };
  for (int64_t number = blockIdx.x; number < args.outer * args.inner; number += gridDim.x) {
    const Line line(args, bytes, number);
#pragma unroll 4
    for (int at = threadIdx.x; at < n; at += kThreadsOfBlock) ordered[at] = pack<Item>(line.key(args, at), at);
    __syncthreads();
    for (int pass = 0; pass < bytes; ++pass) {
      for (int digit = lane; digit <= kDigits; digit += kWarp) counts[warp][digit] = 0;
      __syncwarp();
      Item items[kItemsOfLane];
      int digits[kItemsOfLane];
      uint32_t ranks[kItemsOfLane], of_tile;
#pragma unroll
      for (int round = 0; round < kItemsOfLane; ++round) {
        if (is_inside(round)) items[round] = ordered[first + round * kWarp];
        digits[round] = is_inside(round) ? digit_of(items[round], pass) : kDigits;
      }
      rank_in_warp(digits, rounds, counts[warp], ranks);
      __syncthreads();
      places_in_tile(counts, of_warps, of_tile);
      __syncthreads();
#pragma unroll
      for (int round = 0; round < kItemsOfLane; ++round)
        if (is_inside(round)) ordered[counts[warp][digits[round]] + ranks[round]] = items[round];
      __syncthreads();
    }
    for (int rank = threadIdx.x; rank < args.keep; rank += kThreadsOfBlock) line.write_item(args, rank, ordered[rank]);
    __syncthreads();
  }
}

}  // namespace

void sort_cuda_v4_block_radix(const SortArgs& args, Queue& queue) {
  const int64_t lines = args.outer * args.inner;
  const auto sort = [&]<class Item>() {
    const auto launch = [&]<int kThreadsOfBlock>() {
      const LaunchShape shape{std::min(lines, kMostBlocks), kThreadsOfBlock};
      queue.launch(sort_cuda_v4_block_radix_kernel<Item, kThreadsOfBlock>, shape, args,
                   static_cast<int>(size_of(args.dtype)));
    };
    if constexpr (sizeof(Item) <= 8)
      args.n <= kSortBlock / 2 ? launch.template operator()<kSortBlock / 2 / kItemsOfLane>()
                               : launch.template operator()<kSortBlock / kItemsOfLane>();
  };
  if (args.indices)
    dispatch_item(args.dtype, args.n, sort);
  else
    dispatch_key_item(args.dtype, sort);
}

}  // namespace rooflab::kernels
