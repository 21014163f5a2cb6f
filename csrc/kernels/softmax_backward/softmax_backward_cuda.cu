// The CUDA rungs of softmax_backward: see softmax_backward.h for what they compute.
#include "kernels/common/column_tile.cuh"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_part.cuh"
#include "kernels/common/row_split.h"
#include "kernels/common/row_tile.cuh"
#include "kernels/softmax_backward/softmax_backward.h"

namespace rooflab::kernels {
namespace {

// What an element adds to its row's sum, and its gradient once that is known.
__device__ __forceinline__ float summand(float slope, float y, bool logarithm) { return logarithm ? slope : slope * y; }
template <class T>
__device__ __forceinline__ float gradient(float slope, float y, float sum, bool logarithm) {
  return logarithm ? slope - exp_as<T>(y) * sum : y * (slope - sum);
}

// A block works on blockDim.y rows, each with blockDim.x threads, which are more than a warp only where it is one row.
template <class T>
__global__ void __launch_bounds__(512)
    softmax_backward_cuda_v1_block_per_row_kernel(const T* dy, const T* y, T* dx, int64_t n, int64_t d,
                                                  int64_t dy_row_stride, int64_t y_row_stride, bool logarithm) {
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y, width = row < n ? d : 0;
    const T *slope = dy + row * dy_row_stride, *weight = y + row * y_row_stride;
    const float own =
        sum_of_thread(width, [&](int64_t i) { return summand(to_float(slope[i]), to_float(weight[i]), logarithm); });
    const float sum = blockDim.x > kWarp ? block.reduce(own, 0.0f, Add{}) : warp_reduce(own, Add{}, blockDim.x);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
      dx[row * d + i] = from_float<T>(gradient<T>(to_float(slope[i]), to_float(weight[i]), sum, logarithm));
  }
}

template <class T, int kVectors, int kWidth, bool kBlockPerRow, bool kByWarp = false>
__device__ __forceinline__ void one_pass(const T* dy, const T* y, T* dx, int64_t n, int row_vectors,
                                         int64_t dy_row_stride, int64_t y_row_stride, bool logarithm) {
  using Tile = RowTile<T, kVectors, kWidth, 0, kByWarp>;
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile slopes, weights;
    slopes.load(dy + row * dy_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    weights.load(y + row * y_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    const float own = sum_of_vectors<kVectors, kWidth>([&](int v, int i) {
      return summand(to_float(slopes.vectors[v][i]), to_float(weights.vectors[v][i]), logarithm);
    });
    const float sum = reduce_row<kBlockPerRow>(own, block);

    if (row >= n) continue;
    weights.store(dx + row * row_vectors * kWidth, row_vectors, [&](int v, int) {
      Vector<float, kWidth> out = to_float(weights.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) out[i] = gradient<T>(to_float(slopes.vectors[v][i]), out[i], sum, logarithm);
      return out;
    });
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kSoftmaxBackwardThreads : shared_block_threads(kVectors),
                                  kBlockPerRow ? 1 : 640 / shared_block_threads(kVectors))
    softmax_backward_cuda_v2_one_pass_kernel(const T* dy, const T* y, T* dx, int64_t n, int row_vectors,
                                             int64_t dy_row_stride, int64_t y_row_stride, bool logarithm) {
  one_pass<T, kVectors, kVectorWidth<T>, kBlockPerRow>(dy, y, dx, n, row_vectors, dy_row_stride, y_row_stride,
                                                       logarithm);
}

template <class T, int kElements, RowOwner kOwner>
__global__ void __launch_bounds__(element_row_threads(kOwner), element_row_blocks(kOwner, kElements))
    softmax_backward_cuda_v2a_any_alignment_kernel(const T* dy, const T* y, T* dx, int64_t n, int d,
                                                   int64_t dy_row_stride, int64_t y_row_stride, bool logarithm) {
  one_pass<T, kElements, 1, kOwner == RowOwner::kBlock, kOwner != RowOwner::kLanes>(dy, y, dx, n, d, dy_row_stride,
                                                                                    y_row_stride, logarithm);
}

// partial[row, split] = what the split adds to the row's sum.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_cuda_v3_parts_kernel(const T* dy, const T* y, float* partial, int64_t d, int64_t dy_row_stride,
                                          int64_t y_row_stride, bool logarithm) {
  __shared__ typename BlockReduction<float>::Scratch scratch;
  const T *slope = dy + blockIdx.x * dy_row_stride, *weight = y + blockIdx.x * y_row_stride;
  double own = 0;  // of any number of elements
  RowPart<T, kWidth>(slope, d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    const auto slopes = to_float(load_vector<width>(slope + at)), weights = to_float(load_vector<width>(weight + at));
    float sum = 0;
#pragma unroll
    for (int e = 0; e < width; ++e) sum += summand(slopes[e], weights[e], logarithm);
    own += sum;
  });
  const float sum = BlockReduction<float>(scratch).reduce(static_cast<float>(own), 0.0f, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = sum;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    softmax_backward_cuda_v3_split_rows_kernel(const T* dy, const T* y, T* dx, const float* partial, int64_t d,
                                               int64_t dy_row_stride, int64_t y_row_stride, bool logarithm) {
  __shared__ typename BlockReduction<float>::Scratch scratch;
  wait_for_previous_kernel();
  const float own =
      sum_of_thread(gridDim.y, [&](int64_t split) { return partial[blockIdx.x * int64_t{gridDim.y} + split]; });
  const float sum = BlockReduction<float>(scratch).reduce(own, 0.0f, Add{});
  const T *slope = dy + blockIdx.x * dy_row_stride, *weight = y + blockIdx.x * y_row_stride;
  RowPart<T, kWidth>(slope, d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    const auto slopes = to_float(load_vector<width>(slope + at));
    auto values = to_float(load_vector<width>(weight + at));
#pragma unroll
    for (int e = 0; e < width; ++e) values[e] = gradient<T>(slopes[e], values[e], sum, logarithm);
    store_vector(dx + blockIdx.x * d + at, from_float<T>(values));
  });
}

template <class T, class Kernel>
void launch_one_pass(const SoftmaxBackwardArgs& args, const RowPlan& plan, int64_t width, Kernel* kernel,
                     Queue& queue) {
  queue.launch(kernel, {plan.blocks, {plan.group, plan.rows_per_block}}, static_cast<const T*>(args.dy),
               static_cast<const T*>(args.y), static_cast<T*>(args.dx), args.n, static_cast<int>(args.d / width),
               args.dy_row_stride, args.y_row_stride, args.logarithm);
}

template <class T, int kWidth>
void launch_split_rows(const SoftmaxBackwardArgs& args, Queue& queue) {
  const int64_t splits = row_splits(args.n, args.d);
  const auto *dy = static_cast<const T*>(args.dy), *y = static_cast<const T*>(args.y);
  auto* partial = queue.scratch<float>(args.n * splits);
  LaunchShape shape{{args.n, splits}, kThreads};
  queue.launch(softmax_backward_cuda_v3_parts_kernel<T, kWidth>, shape, dy, y, partial, args.d, args.dy_row_stride,
               args.y_row_stride, args.logarithm);
  shape.early = can_launch_early(queue);
  queue.launch(softmax_backward_cuda_v3_split_rows_kernel<T, kWidth>, shape, dy, y, static_cast<T*>(args.dx), partial,
               args.d, args.dy_row_stride, args.y_row_stride, args.logarithm);
}

template <class T>
__global__ void __launch_bounds__(kColumnThreads)
    softmax_backward_cuda_v4_columns_kernel(const __grid_constant__ SoftmaxBackwardArgs args) {
  constexpr int kLoads = 4;  // in flight
  __shared__ float values[kColumnThreads];
  const Column column(args.inner);
  const T* dy = static_cast<const T*>(args.dy) + column.outer * args.dy_outer_stride + column.inner;
  const T* y = static_cast<const T*>(args.y) + column.outer * args.y_outer_stride + column.inner;
  float own = 0;
  for (int64_t k = threadIdx.y; column.valid && k < args.d; k += kLoads * blockDim.y) {
    float added = 0;  // first alone, so that the number of additions to `own` is kLoads times smaller
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t at = k + load * blockDim.y;
      if (at < args.d) added += summand(to_float(dy[at * args.dy_step]), to_float(y[at * args.y_step]), args.logarithm);
    }
    own += added;
  }
  const float sum = across_column(values, own, Add{});
  if (!column.valid) return;
  T* dx = static_cast<T*>(args.dx) + column.outer * args.d * args.inner + column.inner;
#pragma unroll 4
  for (int64_t k = threadIdx.y; k < args.d; k += blockDim.y)
    dx[k * args.inner] =
        from_float<T>(gradient<T>(to_float(dy[k * args.dy_step]), to_float(y[k * args.y_step]), sum, args.logarithm));
}

}  // namespace

void softmax_backward_cuda_v1_block_per_row(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowTeam team = row_team(args.d);
    queue.launch(softmax_backward_cuda_v1_block_per_row_kernel<T>,
                 {grid_for(args.n, team.rows), {team.lanes, team.rows}}, static_cast<const T*>(args.dy),
                 static_cast<const T*>(args.y), static_cast<T*>(args.dx), args.n, args.d, args.dy_row_stride,
                 args.y_row_stride, args.logarithm);
  });
}

void softmax_backward_cuda_v2_one_pass(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowPlan plan = plan_rows<T>(args.n, args.d);
    dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, kVectorWidth<T>,
                         softmax_backward_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>, queue);
    });
  });
}

void softmax_backward_cuda_v2a_any_alignment(const SoftmaxBackwardArgs& args, Queue& queue) {
  const RowPlan plan = plan_element_rows(args.n, args.d);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_element_rows(plan, [&]<int kElements, RowOwner kOwner>() {
      launch_one_pass<T>(args, plan, 1, softmax_backward_cuda_v2a_any_alignment_kernel<T, kElements, kOwner>, queue);
    });
  });
}

void softmax_backward_cuda_v3_split_rows(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    if (rows_lie_alike(size_of(args.dtype), args.n, args.y, args.y_row_stride, args.dx, args.d) &&
        rows_lie_alike(size_of(args.dtype), args.n, args.dy, args.dy_row_stride, args.dx, args.d))
      return launch_split_rows<T, kVectorWidth<T>>(args, queue);
    launch_split_rows<T, 1>(args, queue);
  });
}

void softmax_backward_cuda_v4_columns(const SoftmaxBackwardArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    queue.launch(softmax_backward_cuda_v4_columns_kernel<T>, column_blocks(args.n, args.d, args.inner), args);
  });
}

}  // namespace rooflab::kernels
