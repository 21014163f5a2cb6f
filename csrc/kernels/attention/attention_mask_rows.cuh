// A bool mask as bits, for the forward pass of v2 and v3a. In v2 every head reads its bytes anew, word by word where
// rows are not aligned to 16 bytes. So where several heads, texts or queries read the same row, a kernel before packs
// it: a word has the bits of 32 keys for one query. A lane then needs two words for a row of a tile, and 5 to 25 % of
// the time are saved (H100).
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_mma_tile.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"

namespace rooflab::kernels {

// A warp makes eight words of a row at a time, for which its lanes read 32 neighbouring keys each.
static __global__ void __launch_bounds__(kThreads)
    attention_cuda_v2_mask_rows_kernel(const __grid_constant__ AttentionArgs args, uint32_t* bits) {
  constexpr int kWords = 8, kKeys = 32;
  const int64_t row_words = attention_mask_row_words(args), chunks = (row_words + kWords - 1) / kWords;
  const int64_t heads = args.mask_strides[1] == 0 ? 1 : args.heads;
  const int64_t rows = attention_mask_rows(args), count = attention_mask_masks(args) * rows * chunks;
  const int64_t warps = gridDim.x * int64_t{kThreads / kKeys}, lane = threadIdx.x % kKeys;
  for (int64_t at = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kKeys; at < count; at += warps) {
    int64_t chunk, query;
    const int64_t row = divide(at, chunks, chunk), mask = divide(row, rows, query);
    const auto* from = static_cast<const uint8_t*>(args.mask) + mask / heads * args.mask_strides[0] +
                       mask % heads * args.mask_strides[1] + query * args.mask_strides[2];
    uint8_t seen[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int64_t key = (chunk * kWords + i) * kKeys + lane;
      seen[i] = key < args.kv_length ? from[key * args.mask_strides[3]] : 0;
    }
    uint32_t mine = 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const uint32_t word = __ballot_sync(~0u, seen[i]);
      if (lane == i) mine = word;
    }
    if (lane < kWords && chunk * kWords + lane < row_words) bits[row * row_words + chunk * kWords + lane] = mine;
  }
}

inline const uint32_t* launch_mask_rows(const AttentionArgs& args, Queue& queue) {
  constexpr int64_t kLanes = 32, kWords = 8;
  const int64_t words = attention_v2_mask_words(args);
  auto* bits = queue.scratch<uint32_t>(words);
  queue.launch(attention_cuda_v2_mask_rows_kernel, a_thread_each(words / kWords * kLanes + kLanes), args, bits);
  return bits;
}

// The bits of a warp's kTiles tiles of 16 rows and 64 keys, which are in order.
template <int kTiles, int kRows>
class MaskRows {
  using Accumulator = mma_tile::Accumulator;

 public:
  using KeyOrder = mma_tile::InOrder;
  static __device__ __forceinline__ int lane_key() { return mma_tile::accumulator_column(); }
  static __device__ __forceinline__ constexpr int key_of(int n, int e) { return n * mma_tile::kMmaN + e; }

  // `first_row` is the warp's, in the block's tile of kRows queries from `first_query` on.
  __device__ MaskRows(const AttentionArgs& args, const uint32_t* bits, int64_t batch, int64_t head, int first_query,
                      int first_row) {
    const int64_t heads = args.mask_strides[1] == 0 ? 1 : args.heads;
    const int64_t mask = (args.mask_strides[0] == 0 ? 0 : batch) * heads + (args.mask_strides[1] == 0 ? 0 : head);
    const int64_t row_words = attention_mask_row_words(args), rows = attention_mask_rows(args);
    const int last = rows == 1 ? 0 : min(kRows, static_cast<int>(rows) - first_query) - 1;
    data_ = bits + (mask * rows + (rows == 1 ? 0 : first_query)) * row_words;
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const int row = min(first_row + i * 8 + mma_tile::accumulator_row(0), last);
      offset_[i] = row * static_cast<unsigned>(row_words);
    }
  }

  static __device__ __forceinline__ constexpr bool takes(int) { return true; }

  __device__ __forceinline__ void load(int key) {
#pragma unroll
    for (int i = 0; i < 2 * kTiles; ++i) {
      const uint2 two = *reinterpret_cast<const uint2*>(data_ + offset_[i] + key / 32);
      words_[i][0] = two.x >> lane_key(), words_[i][1] = two.y >> lane_key();
    }
  }

  __device__ __forceinline__ void apply(Accumulator (&score)[8], int i, int) const {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (!(words_[2 * i + e / 2][n / 4] >> (n % 4 * mma_tile::kMmaN + e % 2) & 1)) score[n][e] = -INFINITY;
    }
  }

 private:
  const uint32_t* data_;         // of the block's first query
  unsigned offset_[2 * kTiles];  // from there, each of the lane's rows
  uint32_t words_[2 * kTiles][2];
};

}  // namespace rooflab::kernels
