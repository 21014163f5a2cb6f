// A block that processes the neighbouring columns of a matrix: a warp's lanes lie across them, so that accesses are
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
    const int64_t tiles = (columns + kColumnLanes - 1) / kColumnLanes;
    outer = blockIdx.x / tiles;
    inner = blockIdx.x % tiles * kColumnLanes + threadIdx.x;
    valid = inner < columns;
  }
};

// Combines the values of the threads of each column; all of them get the result. The whole block must call this, once.
template <class A, class Op>
__device__ __forceinline__ A across_column(A (&values)[kColumnThreads][kColumnLanes], A own, Op op) {
  values[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  A all = values[0][threadIdx.x];
  for (int i = 1; i < blockDim.y; ++i) all = op(all, values[i][threadIdx.x]);
  return all;
}

// One block for each tile of columns, with as many threads along them as have work.
inline LaunchShape column_blocks(int64_t n, int64_t d, int64_t inner) {
  int64_t along = 1;
  while (along < d && along < kColumnThreads) along *= 2;
  return {n / inner * ((inner + kColumnLanes - 1) / kColumnLanes), {kColumnLanes, along}};
}

}  // namespace rooflab::kernels
