// What the CUDA rungs of gather and scatter_add share.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/gather/gather.h"

namespace rooflab::kernels {

constexpr int64_t kIndexThreads = 256;

inline int64_t index_blocks(int64_t count) {
  constexpr int64_t kMostBlocks = 65536;
  return std::min((count + kIndexThreads - 1) / kIndexThreads, kMostBlocks);
}

__device__ __forceinline__ int64_t index_at(const IndexLayout& at, int64_t offset) {
  return at.dtype == DType::kInt64 ? static_cast<const int64_t*>(at.index)[offset]
                                   : static_cast<const int32_t*>(at.index)[offset];
}

}  // namespace rooflab::kernels
