// Blocks that share a row of n rows of d elements, each a part of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/target.h"
#include "kernels/common/alignment.h"
#include "kernels/common/column_sums.h"

namespace rooflab::kernels {

// Rows that are too long for the registers of a block, or so few that a block for each leaves most of the GPU idle. A
// rung that does not hold its row reads it several times, element by element, so sharing pays for shorter rows as well.
inline bool blocks_share_rows(int64_t n, int64_t d, bool is_held = true) {
  constexpr int64_t kLong = 16384, kFew = 132;
  return d > kMaxRowElements || (is_held ? d >= kLong && n < kFew : d >= kLong / 2);
}

inline int64_t row_splits(int64_t n, int64_t d) {
  constexpr int64_t kEnoughBlocks = 1056, kFewest = 2048, kMost = 1024;  // elements of a split, splits of a row
  return std::clamp<int64_t>(std::min(kEnoughBlocks / std::max<int64_t>(n, 1), d / kFewest), 1, kMost);
}

// How blocks share (N, D) where each walks down some columns of some rows, and leaves its sums over these rows.
struct SplitColumns {
  int64_t column_blocks, row_blocks, rows_per_block;

  SplitColumns(int64_t n, int64_t d) {
    constexpr int64_t kEnoughBlocks = 528, kFewestColumns = 2048;
    constexpr int64_t kMostBlocks = 65535;  // that a grid can have along its second dimension
    column_blocks = std::clamp<int64_t>(d / kFewestColumns, 1, 1024);
    const int64_t wanted = kEnoughBlocks / column_blocks, most = (n + kFewestRows - 1) / kFewestRows;
    const int64_t least = (n + kMostBlockRows - 1) / kMostBlockRows;
    const int64_t blocks = std::min(std::max(std::min(wanted, most), least), kMostBlocks);
    rows_per_block = (n + std::max<int64_t>(blocks, 1) - 1) / std::max<int64_t>(blocks, 1);
    row_blocks = n > 0 ? (n + rows_per_block - 1) / rows_per_block : 0;
  }
};

// What the backward of a norm starts that measures parts of rows, in `part_bytes` each, and then walks down columns.
inline Footprint split_norm_footprint(int64_t n, int64_t d, int64_t part_bytes, int sums) {
  return {.launches = (n > 0 ? 2 : 0) + (sums > 0 ? 1 : 0),
          .scratch_bytes = n * row_splits(n, d) * part_bytes +
                           sums * SplitColumns(n, d).row_blocks * d * static_cast<int64_t>(sizeof(float))};
}

}  // namespace rooflab::kernels
