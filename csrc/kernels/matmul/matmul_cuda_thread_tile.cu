// The rungs between v2, which has one sum per thread, and v3, which does everything at once; one idea each. v2 reads
// shared memory twice for each multiply-add, and these three save such reads. float32.
//
// v2a: a thread computes a column of 8 sums. An element of B, once read, is used for all of them: 9 reads for 8
// multiply-adds.
// v2b: a thread computes 8 x 8 sums. Elements of A are reused too: 16 reads for 64.
// v2c: the same with 16-byte loads, from device memory and from shared memory, where A is stored with M innermost for
// that: 4 reads for 64. Row-major operands, aligned, K and N multiples of 4.
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kDepth = 8;  // of the tiles, along K

// The element, or 0 outside the matrix.
__device__ __forceinline__ float element(const float* matrix, int64_t row, int64_t col, int64_t rows, int64_t cols,
                                         int64_t row_stride, int64_t col_stride) {
  return row < rows && col < cols ? matrix[row * row_stride + col * col_stride] : 0.0f;
}

// A block computes kM x kN of C, and each of its threads kRows x kColumns of that.
template <int kM, int kN, int kRows, int kColumns>
__device__ __forceinline__ void multiply(const MatmulArgs& args) {
  constexpr int kThreads = kM / kRows * (kN / kColumns);
  __shared__ float a_tile[kM][kDepth], b_tile[kDepth][kN];
  const int64_t n_tiles = (args.n + kN - 1) / kN;
  const int64_t first_m = blockIdx.x / n_tiles * kM, first_n = blockIdx.x % n_tiles * kN;
  const int row = threadIdx.x / (kN / kColumns) * kRows, col = threadIdx.x % (kN / kColumns) * kColumns;
  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    const float* a = static_cast<const float*>(args.a) + batch * args.a_batch_stride;
    const float* b = static_cast<const float*>(args.b) + batch * args.b_batch_stride;
    float sum[kRows][kColumns] = {};
    for (int64_t k0 = 0; k0 < args.k; k0 += kDepth) {
#pragma unroll
      for (int i = threadIdx.x; i < kM * kDepth; i += kThreads)
        a_tile[i / kDepth][i % kDepth] =
            element(a, first_m + i / kDepth, k0 + i % kDepth, args.m, args.k, args.a_row_stride, args.a_col_stride);
#pragma unroll
      for (int i = threadIdx.x; i < kDepth * kN; i += kThreads)
        b_tile[i / kN][i % kN] =
            element(b, k0 + i / kN, first_n + i % kN, args.k, args.n, args.b_row_stride, args.b_col_stride);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        float a_part[kRows], b_part[kColumns];
#pragma unroll
        for (int i = 0; i < kRows; ++i) a_part[i] = a_tile[row + i][k];
#pragma unroll
        for (int j = 0; j < kColumns; ++j) b_part[j] = b_tile[k][col + j];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kColumns; ++j) sum[i][j] += a_part[i] * b_part[j];
      }
      __syncthreads();
    }
    float* c = static_cast<float*>(args.c) + batch * args.m * args.n;
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kColumns; ++j)
        if (first_m + row + i < args.m && first_n + col + j < args.n)
          c[(first_m + row + i) * args.n + first_n + col + j] = sum[i][j];
  }
}

constexpr int kColumnTile = 64, kTile = 128, kPart = 8;  // of C: a block's in v2a; in v2b and v2c; a thread's
constexpr int kColumnThreads = kColumnTile * kColumnTile / kPart, kTileThreads = kTile * kTile / (kPart * kPart);

__global__ void __launch_bounds__(kColumnThreads)
    matmul_cuda_v2a_thread_column_kernel(const __grid_constant__ MatmulArgs args) {
  multiply<kColumnTile, kColumnTile, kPart, 1>(args);
}

__global__ void __launch_bounds__(kTileThreads)
    matmul_cuda_v2b_thread_tile_kernel(const __grid_constant__ MatmulArgs args) {
  multiply<kTile, kTile, kPart, kPart>(args);
}

// Four neighbours along a row, all inside or all outside the matrix.
__device__ __forceinline__ float4 four(const float* matrix, int64_t row, int64_t col, int64_t rows, int64_t cols,
                                       int64_t row_stride) {
  return row < rows && col < cols ? *reinterpret_cast<const float4*>(matrix + row * row_stride + col)
                                  : make_float4(0, 0, 0, 0);
}

__device__ __forceinline__ void load_eight(float (&part)[kPart], const float* from) {
  reinterpret_cast<float4*>(part)[0] = reinterpret_cast<const float4*>(from)[0];
  reinterpret_cast<float4*>(part)[1] = reinterpret_cast<const float4*>(from)[1];
}

__global__ void __launch_bounds__(kTileThreads)
    matmul_cuda_v2c_vector_loads_kernel(const __grid_constant__ MatmulArgs args) {
  __shared__ __align__(16) float a_tile[kDepth][kTile], b_tile[kDepth][kTile];
  const int64_t n_tiles = (args.n + kTile - 1) / kTile;
  const int64_t first_m = blockIdx.x / n_tiles * kTile, first_n = blockIdx.x % n_tiles * kTile;
  const int row = threadIdx.x / (kTile / kPart) * kPart, col = threadIdx.x % (kTile / kPart) * kPart;
  // What a thread loads of each tile: four elements.
  const int a_row = threadIdx.x / (kDepth / 4), a_k = threadIdx.x % (kDepth / 4) * 4;
  const int b_k = threadIdx.x / (kTile / 4), b_col = threadIdx.x % (kTile / 4) * 4;
  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    const float* a = static_cast<const float*>(args.a) + batch * args.a_batch_stride;
    const float* b = static_cast<const float*>(args.b) + batch * args.b_batch_stride;
    float sum[kPart][kPart] = {};
    for (int64_t k0 = 0; k0 < args.k; k0 += kDepth) {
      const float4 from_a = four(a, first_m + a_row, k0 + a_k, args.m, args.k, args.a_row_stride);
      a_tile[a_k + 0][a_row] = from_a.x;
      a_tile[a_k + 1][a_row] = from_a.y;
      a_tile[a_k + 2][a_row] = from_a.z;
      a_tile[a_k + 3][a_row] = from_a.w;
      *reinterpret_cast<float4*>(&b_tile[b_k][b_col]) =
          four(b, k0 + b_k, first_n + b_col, args.k, args.n, args.b_row_stride);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kDepth; ++k) {
        float a_part[kPart], b_part[kPart];
        load_eight(a_part, &a_tile[k][row]);
        load_eight(b_part, &b_tile[k][col]);
#pragma unroll
        for (int i = 0; i < kPart; ++i)
#pragma unroll
          for (int j = 0; j < kPart; ++j) sum[i][j] += a_part[i] * b_part[j];
      }
      __syncthreads();
    }
    float* c = static_cast<float*>(args.c) + batch * args.m * args.n;
#pragma unroll
    for (int i = 0; i < kPart; ++i)
#pragma unroll
      for (int j = 0; j < kPart; j += 4)
        if (first_m + row + i < args.m && first_n + col + j < args.n)
          *reinterpret_cast<float4*>(&c[(first_m + row + i) * args.n + first_n + col + j]) =
              make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
  }
}

// A block for each tile of `side` x `side`.
Dim3 grid_of(const MatmulArgs& args, int64_t side) {
  return {(args.m + side - 1) / side * ((args.n + side - 1) / side), 1, std::min<int64_t>(args.batch, kMaxGridZ)};
}

}  // namespace

void matmul_cuda_v2a_thread_column(const MatmulArgs& args, Queue& queue) {
  queue.launch(matmul_cuda_v2a_thread_column_kernel, {grid_of(args, kColumnTile), kColumnThreads}, args);
}

void matmul_cuda_v2b_thread_tile(const MatmulArgs& args, Queue& queue) {
  queue.launch(matmul_cuda_v2b_thread_tile_kernel, {grid_of(args, kTile), kTileThreads}, args);
}

void matmul_cuda_v2c_vector_loads(const MatmulArgs& args, Queue& queue) {
  queue.launch(matmul_cuda_v2c_vector_loads_kernel, {grid_of(args, kTile), kTileThreads}, args);
}

}  // namespace rooflab::kernels
