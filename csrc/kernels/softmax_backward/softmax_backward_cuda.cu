// The CUDA rungs of softmax_backward: see softmax_backward.h for what they compute.
#include "kernels/common/long_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/softmax_backward/softmax_backward.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(512)
    softmax_backward_cuda_v1_block_per_row_kernel(const T* dy, const T* y, T* dx, int64_t n, int64_t d,
                                                  int64_t dy_row_stride, int64_t y_row_stride) {
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T *slope = dy + row * dy_row_stride, *weight = y + row * y_row_stride;
    const float sum = sum_of_thread(d, [&](int64_t i) { return to_float(slope[i]) * to_float(weight[i]); });
    const float total = block.reduce(sum, 0.0f, Add{});
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x)
      dx[row * d + i] = from_float<T>(to_float(weight[i]) * (to_float(slope[i]) - total));
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kSoftmaxBackwardThreads : kSharedBlockThreads, kBlockPerRow ? 1 : 10)
    softmax_backward_cuda_v2_one_pass_kernel(const T* dy, const T* y, T* dx, int64_t n, int row_vectors,
                                             int64_t dy_row_stride, int64_t y_row_stride) {
  using Tile = RowTile<T, kVectors>;
  constexpr int kWidth = Tile::kWidth;
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile slopes, weights;
    slopes.load(dy + row * dy_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    weights.load(y + row * y_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    const float own = sum_of_vectors<kVectors, kWidth>(
        [&](int v, int i) { return to_float(slopes.vectors[v][i]) * to_float(weights.vectors[v][i]); });
    const float sum = reduce_row<kBlockPerRow>(own, block);

    if (row >= n) continue;
    weights.store(dx + row * row_vectors * kWidth, row_vectors, [&](int v, int) {
      Vector<float, kWidth> out = to_float(weights.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) out[i] *= to_float(slopes.vectors[v][i]) - sum;
      return out;
    });
  }
}

}  // namespace

void softmax_backward_cuda_v1_block_per_row(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    queue.launch(softmax_backward_cuda_v1_block_per_row_kernel<T>, {grid_for(args.n), row_threads(args.d)},
                 static_cast<const T*>(args.dy), static_cast<const T*>(args.y), static_cast<T*>(args.dx), args.n,
                 args.d, args.dy_row_stride, args.y_row_stride);
  });
}

void softmax_backward_cuda_v2_one_pass(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowPlan plan = plan_rows<T>(args.n, args.d);
    dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      queue.launch(softmax_backward_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                   {plan.blocks, {plan.group, plan.rows_per_block}}, static_cast<const T*>(args.dy),
                   static_cast<const T*>(args.y), static_cast<T*>(args.dx), args.n,
                   static_cast<int>(args.d / kVectorWidth<T>), args.dy_row_stride, args.y_row_stride);
    });
  });
}

}  // namespace rooflab::kernels
