// The launch size of CUDA rungs whose threads, or blocks, stride over their items.
#pragma once

#include <algorithm>

#include "core/launch_shape.h"

namespace rooflab::kernels {

constexpr int kThreads = 256;  // per block
constexpr int64_t kMostBlocks = 65536;

inline LaunchShape a_block_each(int64_t items) { return {std::min(items, kMostBlocks), kThreads}; }
inline LaunchShape a_thread_each(int64_t items) { return a_block_each((items + kThreads - 1) / kThreads); }

}  // namespace rooflab::kernels
