// Launch sizes of CUDA rungs.
#pragma once

#include <algorithm>

#include "core/launch_shape.h"

namespace rooflab::kernels {

constexpr int kThreads = 256;  // per block
constexpr int64_t kMostBlocks = 65536;

constexpr int64_t blocks_of(int64_t items, int64_t per_block = kThreads) { return (items + per_block - 1) / per_block; }

// For threads, or blocks, that stride over their items.
inline LaunchShape a_block_each(int64_t items) { return {std::min(items, kMostBlocks), kThreads}; }
inline LaunchShape a_thread_each(int64_t items) { return a_block_each(blocks_of(items)); }

}  // namespace rooflab::kernels
