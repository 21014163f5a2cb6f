// What the Hopper rungs of attention share: tensor maps of q, k and v, and reductions over the lanes that hold a row of
// a warpgroup's product.
#pragma once

#include <algorithm>

#include "kernels/attention/attention_tile.cuh"
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/ptx_wgmma.cuh"
#include "kernels/common/stage_ring.cuh"
#include "kernels/common/tensor_map.cuh"

namespace rooflab::kernels {

inline constexpr int kWarpgroup = 128;
inline constexpr int kWarpgroupRows = 64;  // rows of a product by one warpgroup
inline constexpr int kLine = 64;           // 16-bit elements in a swizzled line of 128 bytes
inline constexpr int kMmaK = 16;

// A tile of kRows tokens by kHeadSize, as panels with one line per token.
template <class T, int kRows, int kHeadSize>
using TokenTile = T[kHeadSize / kLine][kRows][kLine];

// Where a product's k16 step begins in an operand, in units of 16 bytes: along the lines of panels of kLines lines, or
// across them.
inline constexpr int kLineUnits = kLine / kVector, kStepUnits = kMmaK / kVector, kStepsInLine = kLine / kMmaK;
template <int kLines>
constexpr int along_lines(int step) {
  return step / kStepsInLine * kLines * kLineUnits + step % kStepsInLine * kStepUnits;
}
constexpr int across_lines(int step) { return step * kMmaK * kLineUnits; }

// Starts the copy of the tokens from `token` on of one head, by one thread.
template <class T, int kRows, int kPanels>
__device__ __forceinline__ void load_tokens(T (&tile)[kPanels][kRows][kLine], const CUtensorMap& map,
                                            ptx::Barrier& full, int token, int head, int batch) {
  ptx::barrier_expect(full, sizeof(tile));
#pragma unroll
  for (int panel = 0; panel < kPanels; ++panel) {
    ptx::tile_load(tile[panel], map, full, panel * kLine, token, head, batch);
  }
}

// Reductions over the four lanes that hold a row.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Whether one of the lane's sums is NaN.
template <int kCount>
__device__ __forceinline__ bool has_nan(const float (&sums)[kCount]) {
  bool nan = false;
#pragma unroll
  for (int i = 0; i < kCount; i += 2) nan |= isnan(sums[i]) || isnan(sums[i + 1]);
  return nan;
}

// Tiles of `rows` tokens by one line of a (batch, heads, length, head_size) operand; what lies outside reads as zero.
inline CUtensorMap attention_map(const void* data, const AttentionStrides& strides, int64_t batch, int64_t heads,
                                 int64_t length, int64_t head_size, DType dtype, int rows) {
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(head_size), static_cast<cuuint64_t>(length),
                              static_cast<cuuint64_t>(heads), static_cast<cuuint64_t>(batch)};
  // Along an extent of one the stride has no meaning, but the encoder requires one that is valid.
  const auto bytes = [&](int64_t extent, int64_t stride) {
    return static_cast<cuuint64_t>((extent > 1 ? stride : head_size) * size_of(dtype));
  };
  const cuuint64_t steps[] = {bytes(length, strides.token), bytes(heads, strides.head), bytes(batch, strides.batch)};
  const cuuint32_t box[] = {kLine, static_cast<cuuint32_t>(rows), 1, 1}, ones[] = {1, 1, 1, 1};
  const auto type = dtype == DType::kFloat16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUtensorMap map;
  const CUresult status = tensor_map_encoder()(&map, type, 4, const_cast<void*>(data), sizes, steps, box, ones,
                                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) throw CudaError(message("[attention] cuTensorMapEncodeTiled failed: ", int{status}));
  return map;
}

}  // namespace rooflab::kernels
