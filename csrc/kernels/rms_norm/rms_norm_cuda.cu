// The CUDA rungs of rms_norm: see rms_norm.h for what they compute, and rms_norm_ladder.cpp for what was measured.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/row_part.cuh"
#include "kernels/common/row_split.h"
#include "kernels/rms_norm/rms_norm_tile.cuh"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void rms_norm_cuda_v0_reference_kernel(const T* x, const T* weight, T* y, int64_t n, int64_t d,
                                                  int64_t x_row_stride, double eps, double offset) {
  for (int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; row < n; row += int64_t{gridDim.x} * blockDim.x) {
    const T* in = x + row * x_row_stride;
    double squares = 0;
    for (int64_t i = 0; i < d; ++i) squares += static_cast<double>(to_float(in[i])) * to_float(in[i]);
    const double scale = 1 / sqrt(squares / d + eps);
    for (int64_t i = 0; i < d; ++i) {
      const double gain = weight ? static_cast<double>(to_float(weight[i])) + offset : 1.0;
      y[row * d + i] = round_to<T>(to_float(in[i]) * scale * gain);
    }
  }
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(512)
    rms_norm_cuda_v1_block_per_row_kernel(const T* x, const T* weight, T* y, int64_t n, int64_t d, int64_t x_row_stride,
                                          A eps, A offset) {
  __shared__ typename BlockReduction<A>::Scratch scratch;
  BlockReduction<A> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T* in = x + row * x_row_stride;
    const auto mean_square = [&](A unit) {
      const A squares = sum_of_thread(d, [&](int64_t i) {
        const A value = static_cast<A>(to_float(in[i])) * unit;
        return value * value;
      });
      return block.reduce(squares, A{0}, Add{}) / static_cast<A>(d);
    };
    A mean = mean_square(1);
    const A unit = row_unit(mean + eps);  // the same in all threads
    if (unit != 1) mean = mean_square(unit);
    const A scale = unit / sqrt(mean + eps * unit * unit);
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const A gain = weight ? static_cast<A>(to_float(weight[i])) + offset : A{1};
      y[row * d + i] = round_to<T>(static_cast<A>(to_float(in[i])) * scale * gain);
    }
  }
}

template <class T, int kVectors, int kWidth, bool kBlockPerRow, bool kByWarp = false>
__device__ __forceinline__ void one_pass(const T* x, const T* weight, T* y, int64_t n, int row_vectors,
                                         int64_t x_row_stride, float eps, float offset) {
  using Tile = RowTile<T, kVectors, kWidth, 0, kByWarp>;
  __shared__ typename BlockReduction<float>::Scratch scratch;
  BlockReduction<float> block(scratch);
  const float per_element = 1.0f / (row_vectors * kWidth);
  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile tile;
    tile.load(x + row * x_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));

    const float scale = inverse_rms<kBlockPerRow>(tile, block, per_element, eps);

    if (row >= n) continue;
    T* out = y + row * row_vectors * kWidth;
    const auto scaled = [&](int v, auto&& gain) {
      Vector<float, kWidth> values = to_float(tile.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[i] *= scale * gain(i);
      return values;
    };
    if (weight)
      tile.store(out, row_vectors, [&](int v, int at) {
        const Vector<float, kWidth> gain = load_parameter<kWidth>(weight, at);
        return scaled(v, [&](int i) { return gain[i] + offset; });
      });
    else
      tile.store(out, row_vectors, [&](int v, int) { return scaled(v, [](int) { return 1.0f; }); });
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kMaxRowThreads : shared_block_threads(kVectors),
                                  kBlockPerRow ? 1 : 768 / shared_block_threads(kVectors))
    rms_norm_cuda_v2_one_pass_kernel(const T* x, const T* weight, T* y, int64_t n, int row_vectors,
                                     int64_t x_row_stride, float eps, float offset) {
  one_pass<T, kVectors, kVectorWidth<T>, kBlockPerRow>(x, weight, y, n, row_vectors, x_row_stride, eps, offset);
}

template <class T, int kElements, RowOwner kOwner>
__global__ void __launch_bounds__(element_row_threads(kOwner), element_row_blocks(kOwner, kElements))
    rms_norm_cuda_v2a_any_alignment_kernel(const T* x, const T* weight, T* y, int64_t n, int d, int64_t x_row_stride,
                                           float eps, float offset) {
  one_pass<T, kElements, 1, kOwner == RowOwner::kBlock, kOwner != RowOwner::kLanes>(x, weight, y, n, d, x_row_stride,
                                                                                    eps, offset);
}

// partial[row, split] = the sum of squares of the split; in double, which no square of a float leaves.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    rms_norm_cuda_v3_parts_kernel(const T* x, double* partial, int64_t d, int64_t x_row_stride) {
  __shared__ typename BlockReduction<double>::Scratch scratch;
  const T* in = x + blockIdx.x * x_row_stride;
  double squares = 0;
  RowPart<T, kWidth>(in, d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    const auto values = load_vector<width>(in + at);
#pragma unroll
    for (int e = 0; e < width; ++e) squares += static_cast<double>(to_float(values[e])) * to_float(values[e]);
  });
  squares = BlockReduction<double>(scratch).reduce(squares, 0.0, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = squares;
}

template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    rms_norm_cuda_v3_split_rows_kernel(const T* x, const T* weight, T* y, const double* partial, int64_t d,
                                       int64_t x_row_stride, double eps, A offset) {
  __shared__ typename BlockReduction<double>::Scratch scratch;
  wait_for_previous_kernel();
  double squares = 0;
  for (int split = threadIdx.x; split < gridDim.y; split += kThreads)
    squares += partial[blockIdx.x * int64_t{gridDim.y} + split];
  squares = BlockReduction<double>(scratch).reduce(squares, 0.0, Add{});
  const double scale = 1 / sqrt(squares / d + eps);

  const T* in = x + blockIdx.x * x_row_stride;
  T* out = y + blockIdx.x * d;
  RowPart<T, kWidth>(in, d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    Vector<T, width> values = load_vector<width>(in + at), gains;
    if (weight) gains = load_anywhere<width>(weight + at);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const A gain = weight ? static_cast<A>(to_float(gains[e])) + offset : A{1};
      values[e] = round_to<T>(static_cast<A>(to_float(values[e]) * scale) * gain);
    }
    store_vector<CachePolicy::kStreaming>(out + at, values);
  });
}

template <class T, int kWidth>
void launch_split_rows(const RmsNormArgs& args, Queue& queue) {
  const int64_t splits = row_splits(args.n, args.d);
  const auto x = static_cast<const T*>(args.x);
  auto* partial = queue.scratch<double>(args.n * splits);
  LaunchShape shape{{args.n, splits}, kThreads};
  queue.launch(rms_norm_cuda_v3_parts_kernel<T, kWidth>, shape, x, partial, args.d, args.x_row_stride);
  shape.early = can_launch_early(queue);
  queue.launch(rms_norm_cuda_v3_split_rows_kernel<T, kWidth>, shape, x, static_cast<const T*>(args.weight),
               static_cast<T*>(args.y), partial, args.d, args.x_row_stride, args.eps,
               static_cast<accumulator_t<T>>(args.zero_centered));
}

template <class T, class Kernel>
void launch_one_pass(const RmsNormArgs& args, const RowPlan& plan, int64_t width, Kernel* kernel, Queue& queue) {
  queue.launch(kernel, early({plan.blocks, {plan.group, plan.rows_per_block}}, queue), static_cast<const T*>(args.x),
               static_cast<const T*>(args.weight), static_cast<T*>(args.y), args.n, static_cast<int>(args.d / width),
               args.x_row_stride, static_cast<float>(args.eps), static_cast<float>(args.zero_centered));
}

}  // namespace

void rms_norm_cuda_v0_reference(const RmsNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rms_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(rms_norm_cuda_v0_reference_kernel<T>, {grid_for(args.n, 128), 128}, static_cast<const T*>(args.x),
                 static_cast<const T*>(args.weight), static_cast<T*>(args.y), args.n, args.d, args.x_row_stride,
                 args.eps, static_cast<double>(args.zero_centered));
  });
}

void rms_norm_cuda_v1_block_per_row(const RmsNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rms_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(rms_norm_cuda_v1_block_per_row_kernel<T>, {grid_for(args.n), row_threads(args.d)},
                 static_cast<const T*>(args.x), static_cast<const T*>(args.weight), static_cast<T*>(args.y), args.n,
                 args.d, args.x_row_stride, static_cast<accumulator_t<T>>(args.eps),
                 static_cast<accumulator_t<T>>(args.zero_centered));
  });
}

void rms_norm_cuda_v2_one_pass(const RmsNormArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowPlan plan = plan_rows<T>(args.n, args.d);
    dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, kVectorWidth<T>, rms_norm_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                         queue);
    });
  });
}

void rms_norm_cuda_v2a_any_alignment(const RmsNormArgs& args, Queue& queue) {
  const RowPlan plan = plan_element_rows(args.n, args.d);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_element_rows(plan, [&]<int kElements, RowOwner kOwner>() {
      launch_one_pass<T>(args, plan, 1, rms_norm_cuda_v2a_any_alignment_kernel<T, kElements, kOwner>, queue);
    });
  });
}

void rms_norm_cuda_v3_split_rows(const RmsNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "rms_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    if constexpr (!std::is_same_v<T, double>)
      if (rows_lie_alike(size_of(args.dtype), args.n, args.x, args.x_row_stride, args.y, args.d))
        return launch_split_rows<T, kVectorWidth<T>>(args, queue);
    launch_split_rows<T, 1>(args, queue);
  });
}

}  // namespace rooflab::kernels
