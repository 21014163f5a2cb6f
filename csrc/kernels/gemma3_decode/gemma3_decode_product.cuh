// The products of gemma3_decode's v1: rows of a weight in shared memory times the texts, 8 at a time.
#pragma once

#include "kernels/common/ptx_hopper.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/gemma3_decode/gemma3_decode_slots.cuh"

namespace rooflab::kernels::gemma3_decode {

constexpr int kRows = kDecodeTileRows, kBatch = kDecodeBatch, kThreads = kDecodeWarps * kWarp;

// A block's part of a product, the same in every layer. It lies in shared memory. Consecutive blocks have the slices of
// one group of rows.
struct Product {
  int rows, columns;            // of the weight
  int first_row, first_column;  // of the block's part
  int width, stride, tiles;     // its columns, how far apart its rows lie in shared memory, and its tiles of rows
  int slice, second;            // see prefetch()
  bool has_work;
  void* weights;         // in shared memory
  ptx::Barrier arrived;  // of the weights, once a layer

  __device__ __forceinline__ void place(const DecodeShare& share, void* at, int64_t second_row) {
    const int block = blockIdx.x;
    rows = share.rows;
    columns = share.columns;
    tiles = share.tiles;
    stride = share.stride();
    slice = block % share.slices;
    first_row = block / share.slices * tiles * kRows;
    first_column = slice * share.slice_columns;
    width = min(share.slice_columns, columns - first_column);
    second = static_cast<int>(second_row);
    has_work = block < share.blocks();
    weights = at;
    ptx::barrier_init(arrived, 1);
  }
};

// Starts the copy of a block's part of a weight into shared memory. Each row is one bulk copy by one thread. The lanes
// of a warp issue theirs one after the other, so the rows are dealt to all warps. With a `second` row, tiles come in
// pairs: one begins among the first rows of the weight, its partner `second` rows further down. Rows past the end are
// not copied, and their sums are not written. (compute-sanitizer's racecheck reports these rows: it does not see that
// `arrived` counts the bytes of a bulk copy.)
template <class T>
__device__ __noinline__ void prefetch(Product& p, const T* weight) {
  const int sides = p.second ? 2 : 1, bytes = p.width * static_cast<int>(sizeof(T));
  const int rows = p.tiles * kRows / sides, first = p.first_row / sides;
  const int inside = min(rows, (p.second ? p.second : p.rows) - first);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  if (warp == 0 && lane == 0) ptx::barrier_expect(p.arrived, sides * inside * bytes);
#pragma unroll 1
  for (int row = warp + kDecodeWarps * lane; row < sides * rows; row += kThreads) {
    const int side = row >= rows, r = row - side * rows, tile = r / kRows * sides + side;
    const T* from = weight + int64_t{side * p.second + first + r} * p.columns + p.first_column;
    T* to = static_cast<T*>(p.weights) + (tile * kRows + r % kRows) * p.stride;
    if (r < inside) ptx::copy_row(to, from, bytes, p.arrived);
  }
}

// Waits for the texts' activations, (B, width) from `from` on in rows of `row_slots` slots, which hold two T each.
template <bool kOneText, class T>
__device__ __noinline__ void load_activations(T* to, int stride, const Slot* from, int row_slots, int width, int batch,
                                              unsigned layer) {
  constexpr int kShared = kOneText ? kThreads : kWarp;  // threads that share a text
  constexpr int kFetch = kOneText ? 1 : 3;
  const int slots = width / 2;
#pragma unroll 1
  for (int text = kOneText ? 0 : threadIdx.x / kWarp; text < batch; text += kThreads / kShared) {
#pragma unroll 1
    for (int i = threadIdx.x % kShared * 4; i < slots; i += kFetch * 4 * kShared) {
      Vector<float, 4> runs[kFetch];
      get(runs, from + text * row_slots + i, 4 * kShared, (slots - i + 4 * kShared - 1) / (4 * kShared), layer);
#pragma unroll
      for (int j = 0; j < kFetch; ++j)
        if (i + j * 4 * kShared < slots)
          store_vector(reinterpret_cast<float*>(to + text * stride + 2 * (i + j * 4 * kShared)), runs[j]);
    }
  }
  __syncthreads();
}

// Gives each warp's sums over its steps of 16 columns, (warps, tiles, 16, 8). It ends with a barrier of the block.
template <int kTiles, class T>
__device__ __noinline__ void multiply(int columns, int stride, const T* weights, const T* activations, float* sums) {
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  float acc[kTiles][4]{};
#pragma unroll 4
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

// The same with the product's weights, which have arrived for layers 0, 1, ... one after the other.
template <class T>
__device__ __forceinline__ void multiply(Product& p, int layer, const T* activations, float* sums) {
  ptx::barrier_wait(p.arrived, layer % 2);
  const T* weights = static_cast<const T*>(p.weights);
  switch (p.tiles) {
    case 1: return multiply<1>(p.width, p.stride, weights, activations, sums);
    case 2: return multiply<2>(p.width, p.stride, weights, activations, sums);
    case 3: return multiply<3>(p.width, p.stride, weights, activations, sums);
    default: return multiply<kDecodeMaxTiles>(p.width, p.stride, weights, activations, sums);
  }
}

__device__ __forceinline__ float sum_of_warps(int tiles, const float* sums, int row, int text) {
  static_assert(kDecodeWarps == 8);
  const auto of = [&](int warp) { return sums[(warp * tiles * kRows + row) * kBatch + text]; };
  return of(0) + of(1) + (of(2) + of(3)) + (of(4) + of(5) + (of(6) + of(7)));
}

// Activations times the weight of a layer, to (slices, B, rows); then it starts to load the next layer's weight, if
// there is one.
template <class T>
__device__ __noinline__ void product(Product& p, int layer, int batch, const T* activations, float* sums, Slot* to,
                                     const T* next_weight) {
  const int rows = p.tiles * kRows;
#pragma unroll 1
  for (int first = 0; first < batch; first += kBatch) {
    if (first > 0) __syncthreads();  // the sums before have been read
    multiply(p, layer, activations + first * p.stride, sums);
#pragma unroll 1
    for (int i = threadIdx.x; i < rows * min(batch - first, kBatch); i += kThreads) {
      const int text = batch == 1 ? 0 : i / rows, row = i - text * rows;
      if (p.first_row + row < p.rows)
        put(to + (p.slice * batch + first + text) * p.rows + p.first_row + row, sum_of_warps(p.tiles, sums, row, text),
            layer + 1);
    }
  }
  if (next_weight) prefetch(p, next_weight);
}

}  // namespace rooflab::kernels::gemma3_decode
