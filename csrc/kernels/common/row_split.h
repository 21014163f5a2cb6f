// Blocks that share a row of n rows of d elements, each a part of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/alignment.h"

namespace rooflab::kernels {

// Rows that are too long for the registers of a block, or so few that a block for each leaves most of the GPU idle.
inline bool blocks_share_rows(int64_t n, int64_t d) {
  constexpr int64_t kLong = 16384, kFew = 132;
  return d > kMaxRowElements || (d >= kLong && n < kFew);
}

inline int64_t row_splits(int64_t n, int64_t d) {
  constexpr int64_t kEnoughBlocks = 1056, kFewest = 2048, kMost = 1024;  // elements of a split, splits of a row
  return std::clamp<int64_t>(std::min(kEnoughBlocks / std::max<int64_t>(n, 1), d / kFewest), 1, kMost);
}

}  // namespace rooflab::kernels
