// Tiles of the v2 rungs, forward and backward: rows of 16-bit elements in shared memory, loaded asynchronously and read
// as the operands of mma.sync. See attention_tile.cuh for what all rungs share.
#pragma once

#include <type_traits>

#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/ptx_ampere.cuh"

namespace rooflab::kernels::mma_tile {

[[maybe_unused]] constexpr int kMmaM = 16, kMmaN = 8, kMmaK = 16;

// In which order the four 8 x 8 fragments of 16 rows and 16 columns of a tile are numbered.
enum class Order { kRowsFirst, kColumnsFirst };

// Which row of the tensor a row of a tile holds. order(a + b) must be order(a) + order(b) where a and b share no bit.
struct InOrder {
  __device__ __forceinline__ int operator()(int row) const { return row; }
};

// The 16-byte vectors of a row are permuted by xor, so that the same vector of eight rows lies in different banks.
template <class T, int kRows, int kWidth>
struct Tile {
  T data[kRows * kWidth];

  __device__ __forceinline__ T* vector(int row, int index) { return data + row * kWidth + (index ^ row % 8) * kVector; }

  // The four fragments at (row, column); with kTranspose, of the transposed tile.
  template <Order kOrder, bool kTranspose>
  __device__ __forceinline__ void fragments(uint32_t (&out)[4], int row, int column) {
    const int lane = threadIdx.x % 32, first = lane / 8 % 2, second = lane / 16;
    constexpr bool kRowsFirst = kOrder == Order::kRowsFirst;
    ptx::load_matrices<kTranspose>(out, vector(row + (kRowsFirst ? first : second) * 8 + lane % 8,
                                               column / kVector + (kRowsFirst ? second : first)));
  }

  // Operands of d += a b: a's rows along M; b's rows along N, or along K.
  __device__ __forceinline__ void load_a(uint32_t (&out)[4], int m, int k) {
    fragments<Order::kRowsFirst, false>(out, m, k);
  }
  __device__ __forceinline__ void load_a_transposed(uint32_t (&out)[4], int m, int k) {
    fragments<Order::kColumnsFirst, true>(out, k, m);
  }
  __device__ __forceinline__ void load_b(uint32_t (&out)[4], int n, int k) {
    fragments<Order::kColumnsFirst, false>(out, n, k);
  }
  __device__ __forceinline__ void load_b_transposed(uint32_t (&out)[4], int n, int k) {
    fragments<Order::kRowsFirst, true>(out, k, n);
  }

  // Starts to load rows; those outside the tensor become zero.
  template <int kThreads, class RowOrder = InOrder>
  __device__ __forceinline__ void load_async(const HeadRows<const T>& from, int first_row, RowOrder order = {}) {
    constexpr int kWide = kWidth / kVector, kStep = kThreads / kWide;
    static_assert(kRows % kStep == 0);
    const int row = threadIdx.x / kWide, index = threadIdx.x % kWide;
    const int rows_left = index * kVector < from.columns ? from.rows - first_row - order(row) : 0;
    const T* source = from.at(first_row + order(row), index * kVector);
#pragma unroll
    for (int pass = 0; pass < kRows; pass += kStep) {
      ptx::copy_async<16>(vector(row + pass, index), source, order(pass) < rows_left ? 16 : 0);
      if (pass + kStep < kRows) source += (order(pass + kStep) - order(pass)) * from.stride;
    }
  }
};

// A 16 x 8 accumulator: a lane holds columns 2 (lane % 4) and the next, of row lane / 4 and of the row eight below.
using Accumulator = float[4];

__device__ __forceinline__ int accumulator_row(int half) { return threadIdx.x % 32 / 4 + half * 8; }
__device__ __forceinline__ int accumulator_column() { return threadIdx.x % 4 * 2; }

// Whether one of the lane's sums is NaN.
template <int kTiles, int kCount>
__device__ __forceinline__ bool has_nan(const Accumulator (&sum)[kTiles][kCount]) {
  bool nan = false;
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (const Accumulator& s : sum[i]) nan |= isnan(s[0]) || isnan(s[1]) || isnan(s[2]) || isnan(s[3]);
  }
  return nan;
}

// Two accumulators side by side, rounded, are the A operand of the next product.
template <class T>
__device__ __forceinline__ void to_operand(uint32_t (&a)[4], const Accumulator& left, const Accumulator& right) {
  a[0] = ptx::pack<T>(left[0], left[1]);
  a[1] = ptx::pack<T>(left[2], left[3]);
  a[2] = ptx::pack<T>(right[0], right[1]);
  a[3] = ptx::pack<T>(right[2], right[3]);
}

// Stores a warp's accumulators, times `factor` and rounded, in a tile: from (row, column) on.
template <class T, int kRows, int kWidth, int kTiles, int kCount>
__device__ __forceinline__ void store_rounded(Tile<T, kRows, kWidth>& to, int row, int column,
                                              const Accumulator (&from)[kTiles][kCount], float factor) {
#pragma unroll
  for (int i = 0; i < kTiles; ++i) {
#pragma unroll
    for (int n = 0; n < kCount; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        T* pair = to.vector(row + i * kMmaM + accumulator_row(half), column / kMmaN + n) + accumulator_column();
        *reinterpret_cast<uint32_t*>(pair) =
            ptx::pack<T>(from[i][n][2 * half] * factor, from[i][n][2 * half + 1] * factor);
      }
    }
  }
}

// Stores a tile in device memory by whole vectors, except what lies outside the tensor.
template <int kThreads, class T, int kRows, int kWidth>
__device__ __forceinline__ void store_rows(const HeadRows<T>& to, int first_row, Tile<T, kRows, kWidth>& tile) {
  constexpr int kWide = kWidth / kVector;
  for (int at = threadIdx.x; at < kRows * kWide; at += kThreads) {
    const int row = at / kWide, index = at % kWide;
    if (first_row + row < to.rows && index * kVector < to.columns) {
      *reinterpret_cast<uint4*>(to.at(first_row + row, index * kVector)) =
          *reinterpret_cast<const uint4*>(tile.vector(row, index));
    }
  }
}

// sum += a b, with b 16 x 16.
template <class T>
__device__ __forceinline__ void multiply(Accumulator& left, Accumulator& right, const uint32_t (&a)[4],
                                         const uint32_t (&b)[4]) {
  ptx::mma_m16n8k16<T>(left, a, b[0], b[1]);
  ptx::mma_m16n8k16<T>(right, a, b[2], b[3]);
}

// sum += rows columns^T, both along D_h, of kHead columns: a warp's scores, from (row, column) on.
template <class T, int kHead, int kTiles, int kCount, class RowTile, class ColumnTile>
__device__ __forceinline__ void accumulate_scores(Accumulator (&sum)[kTiles][kCount], RowTile& rows, int row,
                                                  ColumnTile& columns, int column) {
#pragma unroll
  for (int d = 0; d < kHead; d += kMmaK) {
    uint32_t a[kTiles][4];
#pragma unroll
    for (int i = 0; i < kTiles; ++i) rows.load_a(a[i], row + i * kMmaM, d);
#pragma unroll
    for (int n = 0; n < kCount * kMmaN; n += 2 * kMmaN) {
      uint32_t b[4];
      columns.load_b(b, column + n, d);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) multiply<T>(sum[i][n / kMmaN], sum[i][n / kMmaN + 1], a[i], b);
    }
  }
}

// sum += a b, b's rows along K, of which there are kDepth: a warp's part of an output, from `column` on.
template <class T, int kDepth, int kTiles, int kCount, class A, class BTile>
__device__ __forceinline__ void accumulate(Accumulator (&sum)[kTiles][kCount], A&& load_a, BTile& b_tile, int column) {
#pragma unroll
  for (int k = 0; k < kDepth; k += kMmaK) {
    uint32_t a[kTiles][4];
#pragma unroll
    for (int i = 0; i < kTiles; ++i) load_a(a[i], i, k);
#pragma unroll
    for (int n = 0; n < kCount * kMmaN; n += 2 * kMmaN) {
      uint32_t b[4];
      b_tile.load_b_transposed(b, column + n, k);
#pragma unroll
      for (int i = 0; i < kTiles; ++i) multiply<T>(sum[i][n / kMmaN], sum[i][n / kMmaN + 1], a[i], b);
    }
  }
}

// Applies the explicit mask, and the scale where it comes first.
template <class T>
__device__ __forceinline__ float explicitly_masked(float score, int query, int key, const ScoreUnit& unit,
                                                   const Visibility& visibility, const ExplicitMask<T>& mask) {
  score = scaled(score, unit.first);
  return query < visibility.q_length && key < visibility.kv_length ? mask.apply(score, query, key) : score;
}

// score[i][n][e] = f(i, n, e, score[i][n][e]) for all scores. The loop must not be unrolled, because that would need
// more registers than there are. Registers cannot be indexed, so the scores are shifted past the loop instead.
template <int kTiles, int kCount, class F>
__device__ __forceinline__ void apply_in_turn(Accumulator (&score)[kTiles][kCount], F&& f) {
#pragma unroll 1
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      float result[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) result[e] = f(i, n, e, score[i][0][e]);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
#pragma unroll
        for (int next = 1; next < kCount; ++next) score[i][next - 1][e] = score[i][next][e];
        score[i][kCount - 1][e] = result[e];
      }
    }
  }
}

}  // namespace rooflab::kernels::mma_tile
