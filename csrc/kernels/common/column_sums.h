// Sums over the rows of (N, D) that a kernel computes besides its work on each row, such as the gradients of a norm's
// weight and bias. The rows are split into blocks. Each block leaves the sums of its own rows in scratch, a partial
// (blocks, D) in float, and a second stage adds the blocks. A block adds few rows one after another, so that errors
// stay small. Nothing is added atomically, so the result depends on the split alone and is the same on every run.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"
#include "core/target.h"

namespace rooflab::kernels {

// On the CPU the split does not depend on the number of threads, so neither does the result.
inline constexpr int64_t kBlockRows = 8;                           // rows per block, at least
inline constexpr int64_t kMostRowBlocks = 256;                     // so many blocks at most, unless they get too long
inline constexpr int64_t kMostBlockRows = 64;                      // rows that are added one after another, at most
[[gnu::always_inline]] inline int64_t cpu_block_rows(int64_t n) {  // inlined into code for each instruction set
  const int64_t rows = (n + kMostRowBlocks - 1) / kMostRowBlocks;
  return rows < kBlockRows ? kBlockRows : rows < kMostBlockRows ? rows : kMostBlockRows;
}
[[gnu::always_inline]] inline int64_t cpu_blocks(int64_t n) { return (n + cpu_block_rows(n) - 1) / cpu_block_rows(n); }

// How a CUDA rung assigns rows of (N, D) that it holds in registers: a group of neighbouring threads per row, several
// rows per block. Blocks stride over the rows, as few as fill the GPU, so that there are few partial sums.
struct ColumnSumPlan {
  int vectors;  // that a thread holds of each of its rows
  int group;    // threads per row
  int rows_per_block;
  bool block_per_row;  // the group may be wider than a warp
  int tile;            // elements that the group has room for
  int64_t blocks;
};

inline constexpr int kColumnSumElements = 16;     // per thread and row, at most: with their sums, more would spill
inline constexpr int kWarpRowElements = 20;       // the same where a warp works on a row of 16-bit elements
inline constexpr int kWarpRowWidth = 4;           // elements per vector wherever a warp works on a row
inline constexpr int kColumnSumThreads = 256;     // per block with several rows
inline constexpr int kColumnSumRowThreads = 512;  // per block with one row, at most
inline constexpr int kResidentThreads = 512;      // per multiprocessor, at 128 registers each
inline constexpr int kFewestRows = 8;             // the fewest rows that are worth one row of partial sums

// The number of blocks for `steps` steps of rows: `few`, or a multiple of it where a step would be added to too many.
inline int64_t column_sum_blocks(int64_t steps, int64_t few) {
  const int64_t most = few * kMostBlockRows;
  return few * std::max<int64_t>((steps + most - 1) / std::max<int64_t>(most, 1), 1);
}

inline ColumnSumPlan plan_column_sums(DType dtype, int64_t n, int64_t d, const Target& target) {
  constexpr int kLanes = 32;
  ColumnSumPlan plan{};
  plan.block_per_row = d > kLanes * (size_of(dtype) == 2 ? kWarpRowElements : kColumnSumElements);
  if (plan.block_per_row) {
    const int width = static_cast<int>(16 / size_of(dtype));
    plan.vectors = kColumnSumElements / width;
    plan.group = static_cast<int>((d + kColumnSumElements * kLanes - 1) / (kColumnSumElements * kLanes)) * kLanes;
    plan.rows_per_block = 1;
    plan.tile = plan.group * kColumnSumElements;
  } else {
    const int row_vectors = static_cast<int>((d + kWarpRowWidth - 1) / kWarpRowWidth);
    plan.group = 1;
    while (plan.group < kLanes && plan.group < row_vectors) plan.group *= 2;
    plan.vectors = (row_vectors + plan.group - 1) / plan.group;
    plan.rows_per_block = kColumnSumThreads / plan.group;
    plan.tile = plan.group * plan.vectors * kWarpRowWidth;
  }
  const int64_t rows = std::max(plan.rows_per_block, kFewestRows);
  const int resident = std::max(kResidentThreads / (plan.group * plan.rows_per_block), 1);
  plan.blocks = column_sum_blocks((n + plan.rows_per_block - 1) / plan.rows_per_block,
                                  std::min<int64_t>((n + rows - 1) / rows, resident * std::max(target.sm_count, 1)));
  return plan;
}

// The number of blocks for rungs that walk over rows of any length.
inline int64_t walking_blocks(int64_t n, const Target& target) {
  return column_sum_blocks(n, std::min<int64_t>((n + kFewestRows - 1) / kFewestRows, 4 * std::max(target.sm_count, 1)));
}

// What a rung starts that works on `blocks` blocks of rows and leaves `sums` sums of length D.
inline Footprint column_sum_footprint(int64_t blocks, int64_t d, int sums) {
  return {(blocks > 0 ? 1 : 0) + (sums > 0 ? 1 : 0), 0, sums * blocks * d * static_cast<int64_t>(sizeof(float))};
}

}  // namespace rooflab::kernels
