// What the CUDA rungs that normalise rows held in registers share.
#pragma once

#include "kernels/common/long_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels {

// 1 / sqrt(mean(x^2) + eps), where mean_square(unit) is the mean of (x unit)^2, the same in all threads of a row. Rows
// whose squares leave float's range are scaled first. `rows_share_warps`: then all threads of a warp must take part
// again.
template <bool kRowsShareWarps, class MeanSquare>
__device__ __forceinline__ float inverse_rms(float eps, MeanSquare&& mean_square) {
  float mean = mean_square(1.0f);
  const float unit = row_unit(mean + eps);
  if (kRowsShareWarps ? __any_sync(~0u, unit != 1) : unit != 1) mean = mean_square(unit);
  return unit / sqrtf(mean + eps * unit * unit);
}

// The same for the row that a tile holds; `per_element` is 1 / D.
template <bool kBlockPerRow, class T, int kVectors, int kWidth, bool kByWarp>
__device__ __forceinline__ float inverse_rms(const RowTile<T, kVectors, kWidth, 0, kByWarp>& tile,
                                             BlockReduction<float>& block, float per_element, float eps) {
  return inverse_rms<!kBlockPerRow>(eps, [&](float unit) {
    const float squares = sum_of_vectors<kVectors, kWidth>([&](int v, int i) {
      const float value = to_float(tile.vectors[v][i]) * unit;
      return value * value;
    });
    return reduce_row<kBlockPerRow>(squares, block) * per_element;
  });
}

}  // namespace rooflab::kernels
