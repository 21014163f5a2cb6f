// The products of gemma3_decode's v1: rows of a weight in shared memory times up to 8 texts.
#pragma once

#include "kernels/common/ptx_hopper.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/gemma3_decode/gemma3_decode_plan.h"

namespace rooflab::kernels::gemma3_decode {

constexpr int kRows = kDecodeTileRows, kBatch = kDecodeBatch;

// Which part of a product a block has: consecutive blocks have the slices of one group of rows.
struct Place {
  bool has_work;
  int slice, group, first_column, columns, first_row;

  __device__ __forceinline__ explicit Place(const DecodeShare& share)
      : has_work(static_cast<int>(blockIdx.x) < share.blocks()),
        slice(blockIdx.x & (share.slices() - 1)),
        group(blockIdx.x >> share.slices_log2),
        first_column(slice * share.slice_columns),
        columns(min(share.slice_columns, share.columns - first_column)),
        first_row(group * share.tiles * kRows) {}
};

// Starts the copy of a block's part of a weight into shared memory. Each row is one bulk copy by one thread. The lanes
// of a warp issue theirs one after the other, so the rows are dealt to all warps from `first_warp` on. With a `second`
// row, tiles come in pairs: one begins among the first rows of the weight, its partner `second` rows further down. Rows
// past the end are not copied, and their sums are not written. (compute-sanitizer's racecheck reports these rows: it
// does not see that `barrier` counts the bytes of a bulk copy.)
template <class T>
__device__ __forceinline__ void prefetch(const DecodeShare& share, const T* weight, int second, T* to,
                                         ptx::Barrier& barrier, int first_warp) {
  const Place place(share);
  if (!place.has_work) return;
  const int sides = second ? 2 : 1, bytes = place.columns * static_cast<int>(sizeof(T));
  const int rows = share.tiles * kRows / sides, first = place.group * rows;
  const int inside = min(rows, (second ? second : share.rows) - first);
  const int warp = threadIdx.x / kWarp - first_warp, lane = threadIdx.x % kWarp, warps = kDecodeWarps - first_warp;
  if (warp == 0 && lane == 0) ptx::barrier_expect(barrier, sides * inside * bytes);
  for (int row = warp + warps * lane; row < sides * rows; row += warps * kWarp) {
    const int side = row >= rows, r = row - side * rows, tile = r / kRows * sides + side;
    const T* from = weight + int64_t{side * second + first + r} * share.columns + place.first_column;
    if (r < inside) ptx::copy_row(to + (tile * kRows + r % kRows) * share.stride(), from, bytes, barrier);
  }
}

// Gives each warp's sums over its steps of 16 columns, (warps, tiles, 16, 8). It ends with a barrier of the block.
template <int kTiles, class T>
__device__ __noinline__ void multiply(int columns, int stride, const T* weights, const T* activations, float* sums) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  float acc[kTiles][4]{};
#pragma unroll 2
  for (int step = warp; step < columns / kRows; step += kDecodeWarps) {
    // Rows of texts past the batch are not initialised. They reach only columns of the tile that are not read.
    const T* b = activations + lane / 4 * stride + step * kRows + lane % 4 * 2;
    const uint32_t b0 = *reinterpret_cast<const uint32_t*>(b), b1 = *reinterpret_cast<const uint32_t*>(b + 8);
    uint32_t a[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile)
      ptx::load_matrices<false>(a[tile], weights + (tile * kRows + lane % 16) * stride + step * kRows + lane / 16 * 8);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) ptx::mma_m16n8k16<T>(acc[tile], a[tile], b0, b1);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float* to = sums + ((warp * kTiles + tile) * kRows + lane / 4 + 8 * r) * kBatch + lane % 4 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(acc[tile][2 * r], acc[tile][2 * r + 1]);
    }
  __syncthreads();
}

template <class T>
__device__ __forceinline__ void multiply(const DecodeShare& share, int columns, const T* weights, const T* activations,
                                         float* sums) {
  switch (share.tiles) {
    case 1: return multiply<1>(columns, share.stride(), weights, activations, sums);
    case 2: return multiply<2>(columns, share.stride(), weights, activations, sums);
    case 3: return multiply<3>(columns, share.stride(), weights, activations, sums);
    default: return multiply<kDecodeMaxTiles>(columns, share.stride(), weights, activations, sums);
  }
}

__device__ __forceinline__ float sum_of_warps(int tiles, const float* sums, int row, int text) {
  float sum = 0;
#pragma unroll
  for (int w = 0; w < kDecodeWarps; ++w) sum += sums[(w * tiles * kRows + row) * kBatch + text];
  return sum;
}

}  // namespace rooflab::kernels::gemma3_decode
