// When it pays to process rows that are the columns of matrices as they lie in memory, neighbours together.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rooflab::kernels {

inline constexpr int64_t kFewColumns = 8;   // fewer side by side leave most of a vector, or of a warp's access, empty
inline constexpr int kColumnLanes = 32;     // columns of a GPU's block, at least
inline constexpr int kColumnThreads = 512;  // of such a block, at most

// Whether a GPU has enough blocks, which take kColumnLanes columns each: the fewer they are, the shorter their columns
// must be. Otherwise turning the rows, which every multiprocessor takes part in, is faster.
inline bool columns_fill_gpu(int64_t n, int64_t d, int64_t inner) {
  constexpr int64_t kFewBlocks = 4, kElements = 64, kLongest = 8192;  // kElements: along d, for each block
  if (inner < kFewColumns || d > kLongest) return false;
  const int64_t blocks = n / inner * ((inner + kColumnLanes - 1) / kColumnLanes);
  return d <= kElements * std::max(blocks, kFewBlocks);
}

}  // namespace rooflab::kernels
