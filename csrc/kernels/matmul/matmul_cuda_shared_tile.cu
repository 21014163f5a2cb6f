// v2: a block computes a 32 x 32 tile of C. It brings a 32 x 32 tile of A and one of B into shared memory and uses
// every element 32 times before it moves on along K, so device memory is read 32 times less often than by v1. Any
// dtype, any strides: threads read along whichever direction is contiguous.
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/cuda_types.cuh"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kTile = 32;

// One tile in shared memory; the extra column puts the elements of a column into 32 different banks.
template <class T>
struct Tile {
  T at[kTile][kTile + 1];

  // Each of the 32 x 32 threads loads one element; outside rows x cols the tile is zero.
  __device__ void load(const T* matrix, int64_t first_row, int64_t first_col, int64_t rows, int64_t cols,
                       int64_t row_stride, int64_t col_stride) {
    const bool along_rows = row_stride == 1;
    const int row = along_rows ? threadIdx.x : threadIdx.y, col = along_rows ? threadIdx.y : threadIdx.x;
    const int64_t i = first_row + row, j = first_col + col;
    at[row][col] = i < rows && j < cols ? matrix[i * row_stride + j * col_stride] : T(0.0f);
  }
};

template <class T>
__global__ void __launch_bounds__(kTile* kTile) matmul_cuda_v2_shared_tile_kernel(MatmulArgs args) {
  using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;
  __shared__ Tile<T> a_tile, b_tile;

  const int64_t n_tiles = (args.n + kTile - 1) / kTile;
  const int64_t first_row = blockIdx.x / n_tiles * kTile, first_col = blockIdx.x % n_tiles * kTile;
  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    const T* a = static_cast<const T*>(args.a) + batch * args.a_batch_stride;
    const T* b = static_cast<const T*>(args.b) + batch * args.b_batch_stride;
    Accumulator sum = 0;
    for (int64_t k0 = 0; k0 < args.k; k0 += kTile) {
      a_tile.load(a, first_row, k0, args.m, args.k, args.a_row_stride, args.a_col_stride);
      b_tile.load(b, k0, first_col, args.k, args.n, args.b_row_stride, args.b_col_stride);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTile; ++k) {
        sum += Accumulator(to_float(a_tile.at[threadIdx.y][k])) * Accumulator(to_float(b_tile.at[k][threadIdx.x]));
      }
      __syncthreads();
    }
    const int64_t row = first_row + threadIdx.y, col = first_col + threadIdx.x;
    if (row < args.m && col < args.n) {
      static_cast<T*>(args.c)[(batch * args.m + row) * args.n + col] = static_cast<T>(sum);
    }
  }
}

}  // namespace

void matmul_cuda_v2_shared_tile(const MatmulArgs& args, Queue& queue) {
  const int64_t tiles = (args.m + kTile - 1) / kTile * ((args.n + kTile - 1) / kTile);
  const Dim3 grid(tiles, 1, std::min<int64_t>(args.batch, kMaxGridZ));
  dispatch_floating(args.dtype, "matmul", [&]<class T>() {
    queue.launch(matmul_cuda_v2_shared_tile_kernel<cuda_type_t<T>>, {grid, {kTile, kTile}}, args);
  });
}

}  // namespace rooflab::kernels
