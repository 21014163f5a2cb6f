// The CUDA rungs of softmax that hold a row in registers: see softmax.h for what they compute.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

template <class T, int kVectors, bool kBlockPerRow, bool kLogarithm>
__global__ void __launch_bounds__(kBlockPerRow ? kMaxRowThreads : kSharedBlockThreads, kBlockPerRow ? 1 : 12)
    softmax_cuda_v2_one_pass_kernel(const T* x, T* y, int64_t n, int row_vectors, int64_t x_row_stride) {
  using Tile = RowTile<T, kVectors>;
  constexpr int kWidth = Tile::kWidth;
  __shared__ typename BlockReduction<MaxSum<float>>::Scratch scratch;
  BlockReduction<MaxSum<float>> block(scratch);
  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile tile;
    tile.load(x + row * x_row_stride, row < n ? row_vectors : 0, from_float<T>(-INFINITY));

    float maximum = -INFINITY;
    Vector<float, kWidth> values[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      values[v] = to_float(tile.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) maximum = fmaxf(maximum, values[v][i]);
    }
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    maximum = warp_reduce(maximum, larger, kBlockPerRow ? kWarp : blockDim.x);

    const float shift = finite_shift(maximum);
    float sum = sum_of_vectors<kVectors, kWidth>([&](int v, int i) {
      values[v][i] -= shift;
      const float exponential = exp_as<T>(values[v][i]);
      if constexpr (!kLogarithm) values[v][i] = exponential;
      return exponential;
    });
    sum = warp_reduce(sum, Add{}, kBlockPerRow ? kWarp : blockDim.x);

    // What is left to multiply by, or to subtract.
    float last = kLogarithm ? logf(sum) : 1.0f / sum;
    // Each warp's exponentials are relative to its own maximum: one exchange combines them.
    if constexpr (kBlockPerRow) {
      const MaxSum<float> all = block.across_warps({maximum, sum}, nothing<float>(), MergeMaxSum{});
      last = kLogarithm ? all.maximum - shift + logf(all.sum) : expf(maximum - all.maximum) / all.sum;
    }
    if (row < n)
      tile.store(y + row * row_vectors * kWidth, row_vectors, [&](int v, int) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[v][i] = kLogarithm ? values[v][i] - last : values[v][i] * last;
        return values[v];
      });
  }
}

template <class T>
void launch_one_pass(const SoftmaxArgs& args, Queue& queue) {
  const RowPlan plan = plan_rows<T>(args.n, args.d);
  dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
    queue.launch(args.logarithm ? softmax_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow, true>
                                : softmax_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow, false>,
                 early({plan.blocks, {plan.group, plan.rows_per_block}}, queue), static_cast<const T*>(args.x),
                 static_cast<T*>(args.y), args.n, static_cast<int>(args.d / kVectorWidth<T>), args.x_row_stride);
  });
}

}  // namespace

void softmax_cuda_v2_one_pass(const SoftmaxArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() { launch_one_pass<T>(args, queue); });
}

}  // namespace rooflab::kernels
