// The rungs between v3, which multiplies in the FMA units, and v4, which keeps the tensor cores busy; one idea each.
// All have v4's tiles: a block computes 128 x 256 of C, each of its eight warps 64 x 64, 32 steps of K at a time.
//
// v3a: mma.sync multiplies 16 x 16 by 16 x 8 in one instruction of a warp. Each lane reads its part of the operands
// from shared memory itself: two neighbours of A at a time, and single elements of B, which do not lie side by side.
// v3b: ldmatrix brings four 8 x 8 matrices to the lanes that need them, and transposes those of B: two instructions
// instead of 12 for 16 x 16 of A and of B. Its eight rows lie 64 or 512 bytes apart, so some wait for the same bank.
// v3c: the 16-byte vectors of a row are permuted by xor, so that the eight rows lie in different banks.
//
// What is left for v4 is that all warps wait while the next tiles come from device memory. v3b is as
// fast as v3a: it saves instructions, while the banks still bind (matmul_ladder.cpp has the times).
// float16 and bfloat16 with float32 sums; row-major operands, aligned, K and N multiples of 8.
#include <cstring>

#include "kernels/common/cuda_types.cuh"
#include "kernels/common/ptx_ampere.cuh"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kBlockM = 128, kBlockN = 256, kBlockK = 32, kWarpTile = 64;
constexpr int kThreads = (kBlockM / kWarpTile) * (kBlockN / kWarpTile) * 32;
[[maybe_unused]] constexpr int kMmaM = 16, kMmaN = 8, kMmaK = 16;
[[maybe_unused]] constexpr int kGroup = 16;
constexpr int kVector = 8;  // elements in 16 bytes

enum class Reads { kElements, kMatrices, kSwizzledMatrices };

// kRows x kLength of a row-major matrix.
template <class T, int kRows, int kLength, Reads kReads>
struct Tile {
  static constexpr int kWide = kLength / kVector;                 // vectors in a row
  static constexpr int kRowsInBanks = kWide < 8 ? 8 / kWide : 1;  // rows that fill the 32 banks once; 1 if one does
  T data[kRows][kLength];

  __device__ __forceinline__ T* vector(int row, int index) {
    const int place = kReads == Reads::kSwizzledMatrices ? index ^ (row / kRowsInBanks % (8 / kRowsInBanks)) : index;
    return &data[row][place * kVector];
  }

  // All threads copy the part of `matrix` that begins at (first_row, first_column), with zeros outside of it.
  __device__ __forceinline__ void load(const T* matrix, int64_t first_row, int64_t first_column, int64_t rows,
                                       int64_t columns, int64_t row_stride) {
#pragma unroll
    for (int i = threadIdx.x; i < kRows * kWide; i += kThreads) {
      const int64_t row = first_row + i / kWide, column = first_column + i % kWide * kVector;
      const bool inside = row < rows && column < columns;
      *reinterpret_cast<uint4*>(vector(i / kWide, i % kWide)) =
          inside ? __ldg(reinterpret_cast<const uint4*>(matrix + row * row_stride + column)) : uint4{};
    }
  }

  // 16 rows x 16 columns as the left operand: four fragments of 8 x 8, rows first.
  __device__ __forceinline__ void left(uint32_t (&out)[4], int row, int column) {
    const int lane = threadIdx.x % 32;
    if constexpr (kReads == Reads::kElements) {
#pragma unroll
      for (int f = 0; f < 4; ++f) {
        const T* pair = &data[row + f % 2 * 8 + lane / 4][column + f / 2 * 8 + lane % 4 * 2];
        out[f] = *reinterpret_cast<const uint32_t*>(pair);
      }
    } else {
      ptx::load_matrices<false>(out, vector(row + lane % 16, column / kVector + lane / 16));
    }
  }

  // 16 rows x 16 columns as the right operand, where a lane needs two neighbours in a column.
  __device__ __forceinline__ void right(uint32_t (&out)[4], int row, int column) {
    const int lane = threadIdx.x % 32;
    if constexpr (kReads == Reads::kElements) {
#pragma unroll
      for (int f = 0; f < 4; ++f) {
        const int k = row + f % 2 * 8 + lane % 4 * 2, n = column + f / 2 * 8 + lane / 4;
        const T pair[2] = {data[k][n], data[k + 1][n]};
        memcpy(&out[f], pair, sizeof(pair));
      }
    } else {
      ptx::load_matrices<true>(out, vector(row + lane % 16, column / kVector + lane / 16));
    }
  }
};

// The body of the three kernels.
template <class T, Reads kReads>
__device__ __forceinline__ void multiply(const MatmulArgs& args) {
  __shared__ __align__(16) Tile<T, kBlockM, kBlockK, kReads> a_tile;
  __shared__ __align__(16) Tile<T, kBlockK, kBlockN, kReads> b_tile;
  const int m_tiles = static_cast<int>((args.m + kBlockM - 1) / kBlockM);
  const int n_tiles = static_cast<int>((args.n + kBlockN - 1) / kBlockN);
  const TileIndex tile = grouped_tile<kGroup>(blockIdx.x, m_tiles, n_tiles);
  const int64_t first_m = int64_t{tile.m} * kBlockM, first_n = int64_t{tile.n} * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / (kBlockN / kWarpTile) * kWarpTile, warp_n = warp % (kBlockN / kWarpTile) * kWarpTile;

  for (int64_t batch = blockIdx.z; batch < args.batch; batch += gridDim.z) {
    const T* a = static_cast<const T*>(args.a) + batch * args.a_batch_stride;
    const T* b = static_cast<const T*>(args.b) + batch * args.b_batch_stride;
    float sum[kWarpTile / kMmaM][kWarpTile / kMmaN][4] = {};
    for (int64_t k0 = 0; k0 < args.k; k0 += kBlockK) {
      a_tile.load(a, first_m, k0, args.m, args.k, args.a_row_stride);
      b_tile.load(b, k0, first_n, args.k, args.n, args.b_row_stride);
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kBlockK; k += kMmaK) {
        uint32_t a_part[kWarpTile / kMmaM][4], b_part[kWarpTile / 16][4];
#pragma unroll
        for (int i = 0; i < kWarpTile / kMmaM; ++i) a_tile.left(a_part[i], warp_m + i * kMmaM, k);
#pragma unroll
        for (int j = 0; j < kWarpTile / 16; ++j) b_tile.right(b_part[j], k, warp_n + j * 16);
#pragma unroll
        for (int i = 0; i < kWarpTile / kMmaM; ++i) {
#pragma unroll
          for (int j = 0; j < kWarpTile / kMmaN; ++j) {
            const uint32_t(&pair)[4] = b_part[j / 2];
            ptx::mma_m16n8k16<T>(sum[i][j], a_part[i], pair[j % 2 * 2], pair[j % 2 * 2 + 1]);
          }
        }
      }
      __syncthreads();
    }

    // In a 16 x 8 accumulator a lane holds two neighbours of row lane / 4 and two of the row eight below.
#pragma unroll
    for (int i = 0; i < kWarpTile / kMmaM * 2; ++i) {
      const int64_t row = first_m + warp_m + i * 8 + lane / 4;
      if (row >= args.m) break;
      T* c_row = static_cast<T*>(args.c) + (batch * args.m + row) * args.n;
#pragma unroll
      for (int j = 0; j < kWarpTile / kMmaN; ++j) {
        const int64_t column = first_n + warp_n + j * kMmaN + lane % 4 * 2;
        if (column < args.n)
          *reinterpret_cast<uint32_t*>(c_row + column) =
              ptx::pack<T>(sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1) matmul_cuda_v3a_mma_kernel(const __grid_constant__ MatmulArgs args) {
#ifdef ROOFLAB_SM80
  multiply<T, Reads::kElements>(args);
#else
  unsupported_architecture();
#endif
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1)
    matmul_cuda_v3b_ldmatrix_kernel(const __grid_constant__ MatmulArgs args) {
#ifdef ROOFLAB_SM80
  multiply<T, Reads::kMatrices>(args);
#else
  unsupported_architecture();
#endif
}

template <class T>
__global__ void __launch_bounds__(kThreads, 1) matmul_cuda_v3c_swizzle_kernel(const __grid_constant__ MatmulArgs args) {
#ifdef ROOFLAB_SM80
  multiply<T, Reads::kSwizzledMatrices>(args);
#else
  unsupported_architecture();
#endif
}

LaunchShape shape_of(const MatmulArgs& args) {
  const int64_t tiles = (args.m + kBlockM - 1) / kBlockM * ((args.n + kBlockN - 1) / kBlockN);
  return {{tiles, 1, std::min<int64_t>(args.batch, kMaxGridZ)}, kThreads};
}

}  // namespace

void matmul_cuda_v3a_mma(const MatmulArgs& args, Queue& queue) {
  queue.launch(
      args.dtype == DType::kFloat16 ? matmul_cuda_v3a_mma_kernel<__half> : matmul_cuda_v3a_mma_kernel<__nv_bfloat16>,
      shape_of(args), args);
}

void matmul_cuda_v3b_ldmatrix(const MatmulArgs& args, Queue& queue) {
  queue.launch(args.dtype == DType::kFloat16 ? matmul_cuda_v3b_ldmatrix_kernel<__half>
                                             : matmul_cuda_v3b_ldmatrix_kernel<__nv_bfloat16>,
               shape_of(args), args);
}

void matmul_cuda_v3c_swizzle(const MatmulArgs& args, Queue& queue) {
  queue.launch(args.dtype == DType::kFloat16 ? matmul_cuda_v3c_swizzle_kernel<__half>
                                             : matmul_cuda_v3c_swizzle_kernel<__nv_bfloat16>,
               shape_of(args), args);
}

}  // namespace rooflab::kernels
