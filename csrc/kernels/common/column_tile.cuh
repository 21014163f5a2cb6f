// Blocks that process the neighbouring columns of matrices: a warp's lanes lie across them, so that accesses are
// adjacent, and blockDim.y threads share the length of each.
#pragma once

#include "core/launch_shape.h"
#include "kernels/common/column_groups.h"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {

// The column of a thread: `valid` is false past the last one.
struct Column {
  int64_t outer, inner;
  bool valid;

  __device__ __forceinline__ explicit Column(int64_t columns) {
    const int64_t tiles = (columns + blockDim.x - 1) / blockDim.x;
    outer = blockIdx.x / tiles;
    inner = blockIdx.x % tiles * blockDim.x + threadIdx.x;
    valid = inner < columns;
  }
};

// Combines the values of the threads of each column; all of them get the result. The whole block must call this, once.
template <class A, class Op>
__device__ __forceinline__ A across_column(A (&values)[kColumnThreads], A own, Op op) {
  if (blockDim.y == 1) return own;
  values[threadIdx.y * blockDim.x + threadIdx.x] = own;
  __syncthreads();
  A all = values[threadIdx.x];
  for (int i = 1; i < blockDim.y; ++i) all = op(all, values[i * blockDim.x + threadIdx.x]);
  return all;
}

// As many threads along a column as have some elements each; short columns lie in wider blocks.
inline LaunchShape column_blocks(int64_t n, int64_t d, int64_t inner) {
  constexpr int64_t kElements = 4, kMostAlong = 16, kWidest = 256;
  int64_t along = 1, across = kColumnLanes;
  while (along < kMostAlong && along * kElements < d) along *= 2;
  while (across < kWidest && across * along < kColumnThreads / 2 && across < inner) across *= 2;
  return {n / inner * ((inner + across - 1) / across), {across, along}};
}

}  // namespace rooflab::kernels
