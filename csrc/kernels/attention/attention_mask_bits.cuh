// A bool mask as bits, for the backward pass. Where each score reads its byte when it needs it, tiles wait for these
// reads much of the time. So a lane reads a word for 32 scores before their product begins. A word has the bits of one
// key for 32 queries, so a tile of keys and queries needs a word or two for each key.
#pragma once

#include "kernels/attention/attention_backward.h"
#include "kernels/attention/attention_mma_tile.cuh"
#include "kernels/common/launch_size.h"

namespace rooflab::kernels {

constexpr int kMaskQueries = 32;  // of a word

// A thread makes a word. Pairs outside the matrix are hidden.
static __global__ void __launch_bounds__(kThreads)
    attention_backward_cuda_v2_mask_bits_kernel(const __grid_constant__ AttentionArgs args, uint32_t* bits) {
  const int64_t keys = attention_mask_keys(args), blocks = attention_mask_blocks(args);
  const int64_t words = attention_mask_masks(args) * blocks * keys, threads = gridDim.x * int64_t{kThreads};
  const int64_t heads = args.mask_strides[1] == 0 ? 1 : args.heads;
  for (int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x; at < words; at += threads) {
    const int64_t key = at % keys, block = at / keys % blocks, mask = at / keys / blocks;
    const int64_t first = block * kMaskQueries;
    const auto* from = static_cast<const uint8_t*>(args.mask) + mask / heads * args.mask_strides[0] +
                       mask % heads * args.mask_strides[1] + first * args.mask_strides[2] + key * args.mask_strides[3];
    const int64_t rows = key < args.kv_length ? args.q_length - first : 0;
    uint32_t word = 0;
#pragma unroll 8
    for (int i = 0; i < kMaskQueries; ++i)
      if (i < rows && from[i * args.mask_strides[2]]) word |= 1u << i;
    bits[at] = word;
  }
}

inline void launch_mask_bits(const AttentionBackwardArgs& args, Queue& queue) {
  if (args.mask_bits == nullptr) return;
  queue.launch(attention_backward_cuda_v2_mask_bits_kernel,
               a_thread_each(attention_backward_v2_mask_words(args.forward)), args.forward, args.mask_bits);
}

// The bits of a warp's scores: kTiles tiles of 16 rows, and kColumns columns. Rows are keys and columns are queries, or
// the reverse.
template <int kTiles, int kColumns, bool kRowsAreKeys>
class MaskBits {
  using Accumulator = mma_tile::Accumulator;
  static constexpr int kPairs = kColumns / mma_tile::kMmaN;
  static_assert(kTiles * mma_tile::kMmaM <= kMaskQueries && kColumns <= kMaskQueries);

 public:
  __device__ MaskBits(const AttentionBackwardArgs& args) : args_(args) {}
  __device__ __forceinline__ bool exist() const { return args_.mask_bits != nullptr; }

  // `row` and `column` are the warp's first. Its queries lie within one word.
  __device__ __forceinline__ void load(int64_t batch, int64_t head, int row, int column) {
    const AttentionArgs& forward = args_.forward;
    const int64_t mask =
        (forward.mask_strides[0] == 0 ? 0 : batch) * (forward.mask_strides[1] == 0 ? 1 : forward.heads) +
        (forward.mask_strides[1] == 0 ? 0 : head);
    const int query = kRowsAreKeys ? column : row;
    const uint32_t* from =
        args_.mask_bits + (mask * attention_mask_blocks(forward) + query / kMaskQueries) * attention_mask_keys(forward);
    if constexpr (kRowsAreKeys) {
      first_bit_ = column % kMaskQueries + mma_tile::accumulator_column();
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          words_[i][half] = from[row + i * mma_tile::kMmaM + mma_tile::accumulator_row(half)] >> first_bit_;
      }
    } else {
      first_bit_ = row % kMaskQueries + mma_tile::accumulator_row(0);
#pragma unroll
      for (int n = 0; n < kPairs; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e)
          words_[n][e] = from[column + n * mma_tile::kMmaN + mma_tile::accumulator_column() + e] >> first_bit_;
      }
    }
  }

  __device__ __forceinline__ void hide(Accumulator (&score)[kTiles][kPairs]) const {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int n = 0; n < kPairs; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const uint32_t word = kRowsAreKeys ? words_[i][e / 2] : words_[n][e % 2];
          const int bit = kRowsAreKeys ? n * mma_tile::kMmaN + e % 2 : i * mma_tile::kMmaM + e / 2 * 8;
          if (!(word >> bit & 1)) score[i][n][e] = -INFINITY;
        }
      }
    }
  }

 private:
  const AttentionBackwardArgs& args_;
  int first_bit_;
  uint32_t words_[kRowsAreKeys ? kTiles : kPairs][2];
};

}  // namespace rooflab::kernels
