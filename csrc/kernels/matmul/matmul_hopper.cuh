// What the Hopper rungs of matmul share: tiles as TMA loads them, which block computes which tile of C, tensor maps.
#pragma once

#include "kernels/common/ptx_wgmma.cuh"
#include "kernels/common/stage_ring.cuh"
#include "kernels/common/tensor_map.cuh"
#include "kernels/matmul/matmul_cuda.cuh"

namespace rooflab::kernels::hopper {

inline constexpr int kCluster = 2;    // blocks, one above the other, that share a tile of B
inline constexpr int kConsumers = 2;  // warpgroups that multiply
inline constexpr int kWarpgroup = 128, kThreads = (1 + kConsumers) * kWarpgroup;
inline constexpr int kMmaK = 16;
inline constexpr int kLine = 64;  // 16-bit elements in a swizzled line of 128 bytes
inline constexpr int kBlockK = kLine;
inline constexpr int kGroup = 8;  // in pairs of tiles

// A tile of kRows along M or N by kBlockK, as lines of 128 bytes. K-major: a line is one row's 64 elements along K.
// Otherwise a line is 64 rows at one k, and 64 lines make a panel. Either way 64 rows take 64 lines.
template <class T, int kRows>
using Tile = T[kRows][kLine];
template <class T>
constexpr uint32_t kPanelBytes = kLine* kBlockK * sizeof(T);

// The distance from one step along K to the next, in units of 16 bytes: 16 elements of a line, or 16 lines.
template <class T, bool kKMajor>
constexpr int kStepUnits = (kKMajor ? kMmaK : kMmaK * kLine) * sizeof(T) / 16;

struct Problem {
  int m_pairs, n_tiles, k_tiles, batches;
  bool a_batched, b_batched;  // false: one matrix for the whole batch
};

struct OutputTile {
  int m, n, batch;
};

// Calls body for each tile of C that this block computes.
template <int kBlockM, int kBlockN, class Body>
__device__ __forceinline__ void for_each_tile(const Problem& problem, Body body) {
  const int per_matrix = problem.m_pairs * problem.n_tiles;
  const int64_t pairs = int64_t{per_matrix} * problem.batches;
  for (int64_t pair = blockIdx.x / kCluster; pair < pairs; pair += gridDim.x / kCluster) {
    const TileIndex tile = grouped_tile<kGroup>(pair % per_matrix, problem.m_pairs, problem.n_tiles);
    body(OutputTile{(tile.m * kCluster + static_cast<int>(ptx::cluster_rank())) * kBlockM, tile.n * kBlockN,
                    static_cast<int>(pair / per_matrix)});
  }
}

// Issues the copies of kRows rows, from row `first` and `k` on: of A, or of B for every block of the cluster.
template <bool kKMajor, int kRows, class T>
__device__ __forceinline__ void load_a(T (*to)[kLine], const CUtensorMap& map, ptx::Barrier& full, int first, int k,
                                       int matrix) {
  if constexpr (kKMajor) {
    ptx::tile_load(to, map, full, k, first, matrix);
  } else {
    for (int row = 0; row < kRows; row += kLine) ptx::tile_load(to + row, map, full, first + row, k, matrix);
  }
}
template <bool kKMajor, int kRows, class T>
__device__ __forceinline__ void load_b(T (*to)[kLine], const CUtensorMap& map, ptx::Barrier& full, int first, int k,
                                       int matrix) {
  constexpr uint16_t kEveryBlock = (1 << kCluster) - 1;
  if constexpr (kKMajor) {
    ptx::tile_load_multicast(to, map, full, k, first, matrix, kEveryBlock);
  } else {
    for (int row = 0; row < kRows; row += kLine)
      ptx::tile_load_multicast(to + row, map, full, first + row, k, matrix, kEveryBlock);
  }
}

// Tiles of `lines` rows of 128 bytes; what lies outside the matrix reads as zero and is not written.
inline CUtensorMap tensor_map(const MatmulOperand& operand, int64_t batches, DType dtype, int lines) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(operand.row_length), static_cast<cuuint64_t>(operand.rows),
                              static_cast<cuuint64_t>(operand.batch_stride == 0 ? 1 : batches)};
  const cuuint64_t row_bytes = static_cast<cuuint64_t>(operand.leading * size_of(dtype));
  const cuuint64_t batch_bytes = static_cast<cuuint64_t>(operand.batch_stride * size_of(dtype));
  const cuuint64_t strides[] = {row_bytes, operand.batch_stride == 0 ? row_bytes : batch_bytes};
  const cuuint32_t box[] = {kLine, static_cast<cuuint32_t>(lines), 1}, ones[] = {1, 1, 1};
  const auto type = dtype == DType::kFloat16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUtensorMap map;
  const CUresult status = tensor_map_encoder()(&map, type, 3, const_cast<void*>(operand.data), sizes, strides, box,
                                               ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw CudaError(message("[matmul] cuTensorMapEncodeTiled failed: ", int{status}));
  return map;
}

}  // namespace rooflab::kernels::hopper
