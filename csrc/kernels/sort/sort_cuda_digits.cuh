// What the rungs of sort by digits share: a tile of items in order of one digit, in shared memory. Equal digits keep
// their order. The warps of a block have neighbouring parts of the tile, a lane of a warp one item in each round.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/sort/sort_cuda_packed.cuh"

namespace rooflab::kernels {

inline constexpr int kDigits = kSortDigits, kDigitBits = 8;
static_assert(kDigits == 1 << kDigitBits);

// Digit `number` of an item's key; the lowest is number 0.
template <class Item>
__device__ __forceinline__ int digit_of(const Item& item, int number) {
  return static_cast<int>(key_in(item) >> (number * kDigitBits) & (kDigits - 1));
}

// The sum of the values of the threads before this one in the block. `of_warps` has room for a number for each warp.
__device__ __forceinline__ uint32_t sum_before(uint32_t value, uint32_t* of_warps) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  uint32_t sum = value;  // up to this thread, in its warp
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const uint32_t before = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += before;
  }
  if (lane == kWarp - 1) of_warps[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; ++w) sum += of_warps[w];
  return sum - value;
}

// The lanes of the warp with the same digit. A vote for each bit takes the same time for all digits; __match_any_sync
// takes turns for different ones.
__device__ __forceinline__ unsigned lanes_with(int digit) {
  unsigned lanes = ~0u;
#pragma unroll
  for (int bit = 0; bit <= kDigitBits; ++bit) {  // the last is that of kDigits
    const bool is_set = (digit >> bit & 1) != 0;
    const unsigned set = __ballot_sync(~0u, is_set);
    lanes &= is_set ? set : ~set;
  }
  return lanes;
}

// Of every item of a warp, in its first `rounds` rounds, how many before it have its digit; kDigits stands for no item.
// `counts` are the warp's own, zero before.
template <int kRounds, class Count>
__device__ __forceinline__ void rank_in_warp(const int (&digits)[kRounds], int rounds, Count* counts,
                                             uint32_t (&ranks)[kRounds]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int round = 0; round < kRounds; ++round) {
    if (round >= rounds) break;
    const unsigned peers = lanes_with(digits[round]), earlier = peers & ((1u << lane) - 1);
    ranks[round] = counts[digits[round]] + __popc(earlier);
    __syncwarp();
    if (earlier == 0) counts[digits[round]] = static_cast<Count>(ranks[round] + __popc(peers));
    __syncwarp();
  }
}

// Turns the warps' counts of digits into the places of their first items in the ordered tile, where items follow those
// of the digits below, and one another warp by warp. Each of the first kDigits threads has a digit: it is told the
// first place, and how many items of the tile have its digit.
template <int kWarps, class Count>
__device__ __forceinline__ uint32_t places_in_tile(Count (&counts)[kWarps][kDigits + 1], uint32_t* of_warps,
                                                   uint32_t& of_tile) {
  const bool has_digit = threadIdx.x < kDigits;
  of_tile = 0;
  for (int w = 0; w < kWarps && has_digit; ++w) of_tile += counts[w][threadIdx.x];
  const uint32_t first = sum_before(of_tile, of_warps);
  uint32_t place = first;
  for (int w = 0; w < kWarps && has_digit; ++w) {
    const uint32_t of_warp = counts[w][threadIdx.x];
    counts[w][threadIdx.x] = static_cast<Count>(place);
    place += of_warp;
  }
  return first;
}

}  // namespace rooflab::kernels
