// For gemma3_decode's v1: a sum over a block, and a row of the residual stream in registers.
#pragma once

#include "kernels/common/row_unit.h"
#include "kernels/gemma3_decode/gemma3_decode_product.cuh"

namespace rooflab::kernels::gemma3_decode {

// The sum of one number from each thread of the block. Every thread gets it.
class BlockSum {
 public:
  struct Scratch {
    float of_warp[2][kDecodeWarps];
  };
  __device__ explicit BlockSum(Scratch& scratch) : scratch_(scratch) {}

  __device__ __forceinline__ float operator()(float value) {
    float(&of_warp)[kDecodeWarps] = scratch_.of_warp[half_];
    half_ ^= 1;  // none can overwrite what a slower thread still reads from the last
    value = warp_reduce(value, Add{});
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    static_assert(kDecodeWarps == 8);
    return of_warp[0] + of_warp[1] + (of_warp[2] + of_warp[3]) + (of_warp[4] + of_warp[5] + (of_warp[6] + of_warp[7]));
  }

 private:
  Scratch& scratch_;
  int half_ = 0;
};

// 1 / sqrt(mean of squares + eps), to two units in the last place, which is enough for 16 bits and shorter than a root
// and a division. mean_square(unit) is the mean of the squares of a
// row times `unit`: a row whose squares leave float's range is scaled first (common/row_unit.h).
template <class MeanSquare>
__device__ __forceinline__ float inverse_rms_of(float eps, MeanSquare&& mean_square) {
  float mean = mean_square(1.0f);
  const float unit = row_unit(mean + eps);
  if (__any_sync(~0u, unit != 1)) mean = mean_square(unit);
  return unit * rsqrtf(mean + eps * unit * unit);
}

// A row of D numbers, of which each thread of the block has four neighbours. Numbers beyond D are 0.
struct Row {
  Vector<float, 4> values{};

  static __device__ __forceinline__ int column() { return threadIdx.x * 4; }

  template <class T>
  static __device__ __forceinline__ Row load(const T* from, int d) {
    return column() < d ? Row{to_float(load_vector<4>(from + column()))} : Row{};
  }
  // The sum of the rows that `slices` blocks put, `stride` slots apart.
  static __device__ __forceinline__ Row sum(const Slot* from, int slices, int stride, int d, unsigned layer) {
    constexpr int kFetch = 4;
    Row total;
#pragma unroll 1
    for (int slice = 0; slice < slices; slice += kFetch) {
      Vector<float, 4> runs[kFetch];
      get(runs, from + slice * stride + column(), stride, column() < d ? slices - slice : 0, layer);
#pragma unroll
      for (int i = 0; i < kFetch; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) total.values[j] += runs[i][j];
    }
    return total;
  }

  // norm(row) (1 + weight)
  __device__ __forceinline__ Row normalised(const Row& weight, float per_element, float eps,
                                            BlockSum& block_sum) const {
    const float scale = inverse_rms_of(eps, [&](float unit) {
      float squares = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) squares += values[i] * unit * (values[i] * unit);
      return block_sum(squares) * per_element;
    });
    Row result;
#pragma unroll
    for (int i = 0; i < 4; ++i) result.values[i] = values[i] * scale * (weight.values[i] + 1.0f);
    return result;
  }
  __device__ __forceinline__ Row plus(const Row& other) const {
    Row result;
#pragma unroll
    for (int i = 0; i < 4; ++i) result.values[i] = values[i] + other.values[i];
    return result;
  }
};

}  // namespace rooflab::kernels::gemma3_decode
