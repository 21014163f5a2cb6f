// Tiles of the v1 rungs, forward and backward: products of 64 x 64 x 64 on plain multiply-adds, with float32 in shared
// memory whatever type the tensors have.
//
// 128 threads share the rows of a tile of scores. A warp owns whole rows, so work along a row needs no other warp. Of
// its warp's rows, lane 2 x + y has those of parity y, and of every 64 columns
//   columns x, x + 16, x + 32, x + 48   in a tile of scores,
//   columns 4 x to 4 x + 3              in a tile of an output.
// Every load from shared memory brings four floats; 12 of them feed 128 multiply-adds.
#pragma once

#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels::fma_tile {

constexpr int kThreads = 128, kWarps = kThreads / 32;
constexpr int kChunk = 64;                // rows of a streamed tile, and columns that are loaded at a time
constexpr int kChunkStride = kChunk + 4;  // puts sixteen rows of a column of vectors into different banks
constexpr int kColumns = 4;               // per thread, of each 64

// A tile that threads read along its rows. Rows of both parities are read at a time, so odd rows are 16 banks apart.
template <int kRows, int kWidth>
struct RowTile {
  static constexpr int kOdd = kRows / 2 * kWidth + 16;
  float data[kRows * kWidth + 16];

  __device__ __forceinline__ float* at(int row, int column) {
    return data + row / 2 * kWidth + row % 2 * kOdd + column;
  }
};

// A thread's place: kPerThread rows from `row` on, every other one.
template <int kPerThread>
struct Place {
  static constexpr int kRows = kWarps * 2 * kPerThread;
  const int x = threadIdx.x % 32 / 2;
  const int first = threadIdx.x / 32 * 2 * kPerThread + threadIdx.x % 2;
  __device__ __forceinline__ int row(int i) const { return first + 2 * i; }
};

// Loads kRows x 64 elements into shared memory as floats, with zeros outside the tensor. `to(row, column)` says where
// an element goes. Only other blocks hide this latency.
template <int kRows, class T, class To>
__device__ __forceinline__ void load_chunk(const HeadRows<const T>& from, int first_row, int first_column, To&& to) {
  const int rows = from.rows - first_row, columns = from.columns - first_column;
  const auto load = [&]<int kWidth>() {
    constexpr int kWide = kChunk / kWidth, kStep = kThreads / kWide;
    const int column = threadIdx.x % kWide * kWidth;
#pragma unroll 4
    for (int row = threadIdx.x / kWide; row < kRows; row += kStep) {
      Vector<T, kWidth> held = {};
      if (row < rows && column < columns) {
        held = load_vector<kWidth>(from.at(first_row + row, first_column + column));
      }
      store_vector(to(row, column), to_float(held));
    }
  };
  constexpr int kWidest = kVectorWidth<T>;
  from.template has_vectors<kWidest>() ? load.template operator()<kWidest>() : load.template operator()<1>();
}

using Chunk = float[kChunk][kChunkStride];

// Replaces the chunk. All threads must be done with the old one.
template <class T>
__device__ __forceinline__ void next_chunk(Chunk& chunk, const HeadRows<const T>& from, int first_row,
                                           int first_column) {
  __syncthreads();
  load_chunk<kChunk>(from, first_row, first_column, [&](int r, int c) { return &chunk[r][c]; });
  __syncthreads();
}

// A chunk in the registers of the block, on its way from memory to shared memory, with zeros outside the tensor.
template <class T>
struct HeldChunk {
  static constexpr int kWidth = kVectorWidth<T>, kWide = kChunk / kWidth, kStep = kThreads / kWide;
  Vector<T, kWidth> held[kChunk / kStep];
  const int first = threadIdx.x / kWide, column = threadIdx.x % kWide * kWidth;

  __device__ __forceinline__ void load(const HeadRows<const T>& from, int first_row, int first_column) {
    const bool has_vectors = from.template has_vectors<kWidth>();
#pragma unroll
    for (int i = 0; i < kChunk / kStep; ++i) {
      const int row = first_row + first + i * kStep, left = from.columns - first_column - column;
      held[i] = {};
      if (row >= from.rows || left <= 0) continue;
      const T* at = from.at(row, first_column + column);
      if (has_vectors) {
        held[i] = load_vector<kWidth>(at);
      } else {
#pragma unroll
        for (int e = 0; e < kWidth; ++e) {
          if (e < left) held[i][e] = at[e];
        }
      }
    }
  }

  __device__ __forceinline__ void store(Chunk& chunk) const {
#pragma unroll
    for (int i = 0; i < kChunk / kStep; ++i) store_vector(&chunk[first + i * kStep][column], to_float(held[i]));
  }
};

// Loads the rows that a block keeps: all their columns at once.
template <class T, int kRows, int kWidth>
__device__ __forceinline__ void load_resident(RowTile<kRows, kWidth>& tile, const HeadRows<const T>& from,
                                              int first_row) {
  for (int column = 0; column < kWidth; column += kChunk) {
    load_chunk<kRows>(from, first_row, column, [&](int r, int c) { return tile.at(r, column + c); });
  }
}

__device__ __forceinline__ float4 four(const float* from) { return *reinterpret_cast<const float4*>(from); }

// sum[i][j] += rows[i] . chunk[x + 16 j], over `depth` columns. `rows` is this thread's first row, kWidth floats before
// its next one.
template <int kWidth, int kPerThread>
__device__ __forceinline__ void multiply_transposed(float (&sum)[kPerThread][kColumns], const float* rows,
                                                    const Chunk& chunk, int x, int depth) {
#pragma unroll 1
  for (int d = 0; d < depth; d += 4) {
    float4 b[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) b[j] = four(&chunk[x + 16 * j][d]);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const float4 a = four(rows + i * kWidth + d);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        sum[i][j] += a.x * b[j].x;
        sum[i][j] += a.y * b[j].y;
        sum[i][j] += a.z * b[j].z;
        sum[i][j] += a.w * b[j].w;
      }
    }
  }
}

// sum[i][:] += sum_k rows[i][k] chunk[k][4 x : 4 x + 4]: computes an output from a tile of weights. With kSkipsZeros, a
// weight of 0 adds nothing even where the chunk holds NaN or an infinity.
template <bool kSkipsZeros, int kPerThread>
__device__ __forceinline__ void multiply(float (&sum)[kPerThread][kColumns], const float* rows, const Chunk& chunk,
                                         int x) {
#pragma unroll 1
  for (int k = 0; k < kChunk; k += 4) {
    float4 b[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) b[j] = four(&chunk[k + j][4 * x]);
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const float4 a = four(rows + i * kChunk + k);
      const float weights[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (kSkipsZeros && weights[j] == 0) continue;
        sum[i][0] += weights[j] * b[j].x;
        sum[i][1] += weights[j] * b[j].y;
        sum[i][2] += weights[j] * b[j].z;
        sum[i][3] += weights[j] * b[j].w;
      }
    }
  }
}

// The same for a tile in which all pairs see each other, or in which some are hidden and have weight 0.
template <int kPerThread>
__device__ __forceinline__ void multiply(float (&sum)[kPerThread][kColumns], const float* rows, const Chunk& chunk,
                                         int x, bool all_visible) {
  if (all_visible) {
    multiply<false>(sum, rows, chunk, x);
  } else {
    multiply<true>(sum, rows, chunk, x);
  }
}

// Online softmax of one row, which 16 threads share. This thread's scores become weights in p, 16 columns apart; the
// row's maximum and this thread's part of its sum of weights take them in. Returns the factor of the row's sums so far.
__device__ __forceinline__ float add_weights(const float (&score)[kColumns], float to_base_2, float& maximum,
                                             float& weight, float* p) {
  float largest = maximum;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) largest = fmaxf(largest, score[j]);
#pragma unroll
  for (int lanes = 2; lanes < kWarp; lanes *= 2) largest = fmaxf(largest, shuffle_xor(largest, lanes));

  const float shift = largest == -INFINITY ? 0 : largest;  // no key yet: the weights must be 0, not NaN
  const float rescale = exp2f((maximum - shift) * to_base_2);
  float added = 0;
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const float weight_of_key = exp2f((score[j] - shift) * to_base_2);
    added += weight_of_key;
    p[16 * j] = weight_of_key;
  }
  maximum = largest;
  weight = weight * rescale + added;
  return rescale;
}

// Stores four neighbours of a row of an output, except those past the end of the row.
template <class T>
__device__ __forceinline__ void store_four(const HeadRows<T>& to, int row, int column, const float (&values)[4],
                                           float factor) {
  if (row >= to.rows || column >= to.columns) return;
  Vector<T, 4> rounded;
#pragma unroll
  for (int e = 0; e < 4; ++e) rounded[e] = from_float<T>(values[e] * factor);
  if (to.template has_vectors<4>()) {
    store_vector(to.at(row, column), rounded);
  } else {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if (column + e < to.columns) to.at(row, column)[e] = rounded[e];
    }
  }
}

}  // namespace rooflab::kernels::fma_tile
