// What the CUDA rungs of matmul share: the order in which tiles of C are visited.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/matmul/matmul_operand.h"

namespace rooflab::kernels {

constexpr int kMaxGridZ = 65535;

struct TileIndex {
  int m, n;
};

// Blocks that run at the same time get neighbouring tiles of C, `kGroup` tiles high, so that they share rows of A and
// columns of B in the L2 cache.
template <int kGroup>
__device__ __forceinline__ TileIndex grouped_tile(int64_t index, int m_tiles, int n_tiles) {
  const int64_t per_group = int64_t{kGroup} * n_tiles;
  const int first_m = static_cast<int>(index / per_group) * kGroup;
  const int height = m_tiles - first_m < kGroup ? m_tiles - first_m : kGroup;
  const int within = static_cast<int>(index % per_group);
  return {first_m + within % height, within / height};
}

}  // namespace rooflab::kernels
