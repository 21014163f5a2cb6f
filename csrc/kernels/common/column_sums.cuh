// For CUDA rungs that are the backward of a norm: their walk over rows, and the sums over rows of common/column_sums.h.
// The sums are kept in registers beside the tiles of rows (row_tile.cuh) until a block has processed all of its rows.
// Then a kernel adds the blocks' sums.
#pragma once

#include "core/queue.h"
#include "kernels/common/column_sums.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/row_tile.cuh"

namespace rooflab::kernels {

// The part of a row that a thread holds. A thread has several vectors of a row only where at least a whole warp works
// on the row.
template <class T, int kVectors, bool kBlockPerRow>
using ColumnSumTile = RowTile<T, kVectors, kBlockPerRow ? kVectorWidth<T> : kWarpRowWidth, kBlockPerRow ? 0 : kWarp>;

// The same element by element, for rows that do not consist of aligned vectors.
template <class T, int kElements>
using ColumnSumElements = RowTile<T, kElements, 1>;

// Prefetches into L2 a row that the threads of a block will load. Without this there would be too few loads in flight
// to keep the memory busy, because few rows fit in registers at a time.
template <class T>
__device__ __forceinline__ void prefetch_row(const T* row, int64_t d) {
  constexpr int kLine = 128 / sizeof(T);
  for (int64_t at = threadIdx.x * kLine; at < d; at += blockDim.x * kLine)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(row + at));
}

// Loads the gains of the columns into shared memory as float: `weight` plus `offset`, or 1; 0 beyond the row's end.
template <class T>
__device__ __forceinline__ void load_gains(float* gains, const T* weight, float offset, int d, int tile) {
  const int threads = blockDim.x * blockDim.y;
  for (int i = threadIdx.x + threadIdx.y * blockDim.x; i < tile; i += threads)
    gains[i] = i >= d ? 0.0f : weight ? to_float(weight[i]) + offset : 1.0f;
  __syncthreads();
}

// Calls process(row, is_row, slopes, values, reload) for each row of this block: slopes and values are what the thread
// holds of dy and x, and reload(values) reads x again. Threads without a row take part, because the others may need
// them in a reduction: their is_row is false and their tiles are 0. With kLoadsAhead the next row is already on its way
// into registers meanwhile, and otherwise, if a block works on one row, into L2.
template <class Tile, bool kBlockPerRow, bool kLoadsAhead, class T, class Process>
__device__ __forceinline__ void for_rows_of_block(const T* dy, const T* x, int64_t n, int d, int64_t dy_row_stride,
                                                  int64_t x_row_stride, Process&& process) {
  const int64_t step = gridDim.x * int64_t{blockDim.y};
  const auto load = [&](Tile& tile, const T* from, int64_t row, int64_t row_stride) {
    tile.load(from + row * row_stride, row < n ? d / Tile::kWidth : 0, from_float<T>(0.0f));
  };
  int64_t row = blockIdx.x * int64_t{blockDim.y} + threadIdx.y;
  Tile slopes, values;
  load(slopes, dy, row, dy_row_stride);
  load(values, x, row, x_row_stride);
  for (; row - threadIdx.y < n; row += step) {
    Tile next_slopes, next_values;
    if constexpr (kLoadsAhead) {
      load(next_slopes, dy, row + step, dy_row_stride);
      load(next_values, x, row + step, x_row_stride);
    } else if (kBlockPerRow && row + step < n) {
      prefetch_row(dy + (row + step) * dy_row_stride, d);
      prefetch_row(x + (row + step) * x_row_stride, d);
    }
    process(row, kBlockPerRow || row < n, slopes, values, [&](Tile& again) { load(again, x, row, x_row_stride); });
    if constexpr (kLoadsAhead) {
      slopes = next_slopes;
      values = next_values;
    } else {
      load(slopes, dy, row + step, dy_row_stride);
      load(values, x, row + step, x_row_stride);
    }
  }
}

// dn = dy times the gain, in float: one vector of a tile. Never fused with what follows, so that subtracting the mean
// of dn leaves exactly 0 where all of dn is equal.
template <class Tile>
__device__ __forceinline__ Vector<float, Tile::kWidth> times_gain(const Tile& slopes, int v, const float* gains) {
  Vector<float, Tile::kWidth> dn = to_float(slopes.vectors[v]);
  const Vector<float, Tile::kWidth> gain = load_vector<Tile::kWidth>(gains + Tile::place(v) * Tile::kWidth);
#pragma unroll
  for (int i = 0; i < Tile::kWidth; ++i) dn[i] = __fmul_rn(dn[i], gain[i]);
  return dn;
}

// Multiplies what a thread holds of a row by the row's unit.
template <int kVectors, int kWidth>
__device__ __forceinline__ void multiply(Vector<float, kWidth> (&vectors)[kVectors], float unit) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int i = 0; i < kWidth; ++i) vectors[v][i] *= unit;
}

// What one thread accumulates for the columns that it holds in a tile.
template <class Tile, int kVectors>
struct ColumnSums {
  static constexpr int kWidth = Tile::kWidth;
  float sums[kVectors][kWidth] = {};

  // Writes the sums over all rows of the block. `columns` is shared memory for a tile. Every thread of the block must
  // call this.
  __device__ __forceinline__ void store(float* partial, int row_vectors, float* columns) {
    add_rows_of_warp();
    const int rows = static_cast<int>(blockDim.x) < kWarp ? kWarp / static_cast<int>(blockDim.x) : 1;  // of a warp
    const int last = static_cast<int>(blockDim.y) / rows - 1, own = static_cast<int>(threadIdx.y) / rows;
    const bool is_first = threadIdx.y % rows == 0;
    __syncthreads();  // the columns may still be in use
    for (int y = 0; y < last; ++y) {
      if (own == y && is_first) {
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            float& column = columns[Tile::place(v) * kWidth + i];
            column = y > 0 ? column + sums[v][i] : sums[v][i];
          }
      }
      __syncthreads();
    }
    if (own != last || !is_first) return;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int at = Tile::place(v) * kWidth;
      if (Tile::place(v) >= row_vectors) continue;
      Vector<float, kWidth> out;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) out[i] = sums[v][i] + (last > 0 ? columns[at + i] : 0.0f);
      store_vector(partial + at, out);
    }
  }

 private:
  // Where a warp has several rows, each of its threads gets the sums over all of them.
  __device__ __forceinline__ void add_rows_of_warp() {
    for (int mask = blockDim.x; mask < kWarp; mask *= 2)
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sums[v][i] += __shfl_xor_sync(~0u, sums[v][i], mask);
  }
};

constexpr int kSumLanes = 32, kSumTeams = 16;  // per block: columns, and teams that share the blocks of rows

// out[k][c] = the sum over blocks of partial[k, block, c]. The result number k is blockIdx.y.
template <class T>
__global__ void __launch_bounds__(kSumLanes* kSumTeams)
    column_sums_cuda_kernel(const float* partial, int64_t blocks, int64_t d, T* out0, T* out1) {
  __shared__ double team[kSumTeams][kSumLanes];
  const int64_t column = blockIdx.x * int64_t{kSumLanes} + threadIdx.x;
  const float* from = partial + blockIdx.y * blocks * d + column;
  double sum = 0;  // there may be many blocks
  wait_for_previous_kernel();
  if (column < d) {
#pragma unroll 8
    for (int64_t block = threadIdx.y; block < blocks; block += kSumTeams) sum += from[block * d];
  }
  team[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || column >= d) return;
#pragma unroll
  for (int i = 1; i < kSumTeams; ++i) sum += team[i][threadIdx.x];
  (blockIdx.y ? out1 : out0)[column] = round_to<T>(sum);
}

// Adds up `sums` partial results (blocks, D), which follow one another in memory.
template <class T>
void launch_column_sums(Queue& queue, const float* partial, int64_t blocks, int64_t d, int sums, T* out0, T* out1) {
  queue.launch(column_sums_cuda_kernel<T>,
               {.grid = {(d + kSumLanes - 1) / kSumLanes, sums},
                .block = {kSumLanes, kSumTeams},
                .early = can_launch_early(queue)},
               partial, blocks, d, out0, out1);
}

// Calls launch.operator()<kVectors, kBlockPerRow>() as the plan for elements T says.
template <class T, class Launch>
void dispatch_column_sums(const ColumnSumPlan& plan, Launch&& launch) {
  static_assert(kWarpRowElements == 5 * kWarpRowWidth && kColumnSumElements == 4 * kWarpRowWidth);
  if (plan.block_per_row) return launch.template operator()<kColumnSumElements / kVectorWidth<T>, true>();
  switch (plan.vectors) {
    case 1: return launch.template operator()<1, false>();
    case 2: return launch.template operator()<2, false>();
    case 3: return launch.template operator()<3, false>();
    case 4: return launch.template operator()<4, false>();
    default:
      if constexpr (sizeof(T) == 2) launch.template operator()<5, false>();
  }
}

// The same with the elements that a thread holds of a row, for ColumnSumElements.
template <class T, class Launch>
void dispatch_column_sum_elements(const ColumnSumPlan& plan, Launch&& launch) {
  dispatch_column_sums<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
    launch.template operator()<kBlockPerRow ? kColumnSumElements : kVectors * kWarpRowWidth, kBlockPerRow>();
  });
}

}  // namespace rooflab::kernels
