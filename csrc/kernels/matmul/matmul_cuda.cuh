// What the CUDA rungs of matmul share: how an operand lies in memory, and the order in which tiles of C are visited.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/cuda_check.cuh"
#include "kernels/common/current_device.cuh"
#include "kernels/matmul/matmul.h"

namespace rooflab::kernels {

// A or B as rows of contiguous elements, `leading` elements apart. The rows run along K (k_major) or along M or N.
struct MatmulOperand {
  const void* data;
  int64_t rows, row_length;
  int64_t leading, batch_stride;
  bool k_major;
  bool has_rows;  // false: neither stride is one

  bool aligned_to_16_bytes(DType dtype) const {
    const int64_t bytes = size_of(dtype);
    return reinterpret_cast<uintptr_t>(data) % 16 == 0 && leading * bytes % 16 == 0 && batch_stride * bytes % 16 == 0;
  }
};

inline MatmulOperand matmul_operand(const void* data, int64_t mn, int64_t k, int64_t mn_stride, int64_t k_stride,
                                    int64_t batch_stride) {
  // The stride of an extent of one says nothing, so it may as well be one.
  const bool k_unit = k <= 1 || k_stride == 1, mn_unit = mn <= 1 || mn_stride == 1;
  const bool k_major = k_unit && !(k <= 1 && mn_unit);
  const int64_t rows = k_major ? mn : k, row_length = k_major ? k : mn;
  const int64_t leading = rows <= 1 ? (row_length + 15) / 16 * 16 : k_major ? mn_stride : k_stride;
  return {data, rows, row_length, leading, batch_stride, k_major, k_unit || mn_unit};
}

inline MatmulOperand matmul_a(const MatmulArgs& args) {
  return matmul_operand(args.a, args.m, args.k, args.a_row_stride, args.a_col_stride,
                        args.batch <= 1 ? 0 : args.a_batch_stride);
}

inline MatmulOperand matmul_b(const MatmulArgs& args) {
  return matmul_operand(args.b, args.n, args.k, args.b_col_stride, args.b_row_stride,
                        args.batch <= 1 ? 0 : args.b_batch_stride);
}

// The tiled rungs count rows and columns in 32 bits; offsets are 64-bit everywhere.
inline bool matmul_fits_int32(const MatmulArgs& args) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max() - 1024;
  return args.batch <= kMax && args.m <= kMax && args.n <= kMax && args.k <= kMax;
}

inline bool matmul_is_empty(const MatmulArgs& args) { return args.batch == 0 || args.m == 0 || args.n == 0; }

inline cudaStream_t cuda_stream(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

constexpr int kMaxGridZ = 65535;

struct TileIndex {
  int m, n;
};

// Blocks that run together get tiles of C that lie together, `kGroup` tiles high, so that they share rows of A and
// columns of B in the L2 cache.
template <int kGroup>
__device__ __forceinline__ TileIndex grouped_tile(int64_t index, int m_tiles, int n_tiles) {
  const int64_t per_group = int64_t{kGroup} * n_tiles;
  const int first_m = static_cast<int>(index / per_group) * kGroup;
  const int height = m_tiles - first_m < kGroup ? m_tiles - first_m : kGroup;
  const int within = static_cast<int>(index % per_group);
  return {first_m + within % height, within / height};
}

}  // namespace rooflab::kernels
