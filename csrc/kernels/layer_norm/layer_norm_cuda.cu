// The CUDA rungs of layer_norm: see layer_norm.h for what they compute, and layer_norm_ladder.cpp for what was
// measured.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/row_part.cuh"
#include "kernels/common/row_split.h"
#include "kernels/common/row_tile.cuh"
#include "kernels/common/row_unit.h"
#include "kernels/common/spread.cuh"
#include "kernels/layer_norm/layer_norm.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void layer_norm_cuda_v0_reference_kernel(const T* x, const T* weight, const T* bias, T* y, int64_t n,
                                                    int64_t d, int64_t x_row_stride, double eps) {
  for (int64_t row = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; row < n; row += int64_t{gridDim.x} * blockDim.x) {
    const T* in = x + row * x_row_stride;
    double sum = 0, distances = 0, squares = 0;
    for (int64_t i = 0; i < d; ++i) sum += to_float(in[i]);
    const double mean = sum / d;
    for (int64_t i = 0; i < d; ++i) distances += to_float(in[i]) - mean;
    const double rest = distances / d;  // what the rounded mean lacks
    const auto distance = [&](int64_t i) { return to_float(in[i]) - mean - rest; };
    for (int64_t i = 0; i < d; ++i) squares += distance(i) * distance(i);
    const double scale = 1 / sqrt(squares / d + eps);
    for (int64_t i = 0; i < d; ++i) {
      const double gain = weight ? static_cast<double>(to_float(weight[i])) : 1.0;
      const double offset = bias ? static_cast<double>(to_float(bias[i])) : 0.0;
      y[row * d + i] = round_to<T>(distance(i) * scale * gain + offset);
    }
  }
}

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(512)
    layer_norm_cuda_v1_block_per_row_kernel(const T* x, const T* weight, const T* bias, T* y, int64_t n, int64_t d,
                                            int64_t x_row_stride, A eps) {
  __shared__ typename BlockReduction<A>::Scratch sum_scratch;
  __shared__ typename BlockReduction<Sums<A, 2>>::Scratch scratch;
  BlockReduction<A> sum_block(sum_scratch);
  BlockReduction<Sums<A, 2>> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T* in = x + row * x_row_stride;
    A unit = 1, mean, rest, variance;  // of x times unit; rest: what the rounded mean lacks
    const auto distance = [&](int64_t i) { return static_cast<A>(to_float(in[i])) * unit - mean; };
    const auto correct = [&] {
      const auto sums = reduce_row<true>(sum_of_thread(d,
                                                       [&](int64_t i) {
                                                         return Sums<A, 2>{distance(i), distance(i) * distance(i)};
                                                       }),
                                         block);
      rest = sums.of[0] / static_cast<A>(d);
      const A square = sums.of[1] / static_cast<A>(d);
      variance = above_zero(square - rest * rest);
      return square;
    };
    const auto measure = [&] {
      const A sum = sum_of_thread(d, [&](int64_t i) { return static_cast<A>(to_float(in[i])) * unit; });
      mean = reduce_row<true>(sum, sum_block) / static_cast<A>(d);
    };
    measure();
    for (int corrections = 0;; ++corrections) {  // mostly one
      const A square = correct();
      if (corrections == 0 && row_unit(variance + eps, mean) != 1) {  // the same in all threads
        unit = row_unit(variance + eps, mean);
        measure();
      } else if (corrections < 2 && variance < square / 8) {  // the mean is off by more than the numbers differ
        mean += rest;
      } else {
        break;
      }
    }
    const A scale = inverse_deviation(variance, eps, unit);
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const A gain = weight ? static_cast<A>(to_float(weight[i])) : A{1};
      const A offset = bias ? static_cast<A>(to_float(bias[i])) : A{0};
      y[row * d + i] = round_to<T>((distance(i) - rest) * scale * gain + offset);
    }
  }
}

template <class T, int kVectors, int kWidth, bool kBlockPerRow, bool kByWarp = false>
__device__ __forceinline__ void one_pass(const T* x, const T* weight, const T* bias, T* y, int64_t n, int row_vectors,
                                         int64_t x_row_stride, float eps) {
  using Tile = RowTile<T, kVectors, kWidth, 0, kByWarp>;
  __shared__ typename BlockReduction<float>::Scratch sum_scratch;
  __shared__ typename BlockReduction<Sums<float, 2>>::Scratch scratch;
  BlockReduction<float> sum_block(sum_scratch);
  BlockReduction<Sums<float, 2>> block(scratch);
  const float per_element = 1.0f / (row_vectors * kWidth);
  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile tile;
    tile.load(x + row * x_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));

    // The row stays in registers in its own dtype. Distances from the mean are recomputed where they are needed: kept
    // in float, they would take more registers than there are.
    float unit = 1, mean, rest, square, variance;  // of x times unit; rest: what the rounded mean lacks
    const auto distances = [&](int v) {
      Vector<float, kWidth> values = to_float(tile.vectors[v]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[i] = values[i] * unit - mean;
      return values;
    };
    const auto measure_mean = [&] {
      float sum = 0;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const Vector<float, kWidth> values = to_float(tile.vectors[v]);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum += values[i] * unit;
      }
      // Rounded here: fused into some of the distances, it would differ from the mean that the others are from.
      mean = __fmul_rn(reduce_row<kBlockPerRow>(sum, sum_block), per_element);
    };
    const auto correct = [&] {
      Sums<float, 2> sums{};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (Tile::place(v) >= row_vectors) continue;
        const Vector<float, kWidth> values = distances(v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sums.of[0] += values[i];
          sums.of[1] += values[i] * values[i];
        }
      }
      sums = reduce_row<kBlockPerRow>(sums, block);
      rest = sums.of[0] * per_element;
      square = sums.of[1] * per_element;
      variance = above_zero(square - rest * rest);
    };
    // Rows may share a warp, so what one of them needs is done by all of its threads.
    const auto any = [](bool wanted) { return kBlockPerRow ? wanted : __any_sync(~0u, wanted) != 0; };
    measure_mean();
    for (int corrections = 0;; ++corrections) {  // mostly one; a loop, because copies of the code would need registers
      correct();
      if (corrections == 0 && any(leaves_range(variance + eps))) {  // squares of huge or tiny numbers
        unit = row_unit(variance + eps, mean);
        measure_mean();
      } else if (corrections < 2 && any(variance < square * 0.125f)) {  // the mean is off by more than numbers differ
        mean += rest;
      } else {
        break;
      }
    }
    const float scale = inverse_deviation(variance, eps, unit), shift = rest * scale;

    if (row >= n) continue;
    T* out = y + row * row_vectors * kWidth;
    if (weight && bias)  // decided once for all vectors: a branch for each costs 5 % of the bandwidth
      tile.store(out, row_vectors, [&](int v, int at) {
        const Vector<float, kWidth> gain = load_parameter<kWidth>(weight, at),
                                    offset = load_parameter<kWidth>(bias, at);
        Vector<float, kWidth> values = distances(v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[i] = (values[i] * scale - shift) * gain[i] + offset[i];
        return values;
      });
    else
      tile.store(out, row_vectors, [&](int v, int at) {
        Vector<float, kWidth> values = distances(v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const float gain = weight ? to_float(weight[at + i]) : 1.0f, offset = bias ? to_float(bias[at + i]) : 0.0f;
          values[i] = (values[i] * scale - shift) * gain + offset;
        }
        return values;
      });
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kMaxRowThreads : shared_block_threads(kVectors),
                                  kBlockPerRow ? 1 : 640 / shared_block_threads(kVectors))
    layer_norm_cuda_v2_one_pass_kernel(const T* x, const T* weight, const T* bias, T* y, int64_t n, int row_vectors,
                                       int64_t x_row_stride, float eps) {
  one_pass<T, kVectors, kVectorWidth<T>, kBlockPerRow>(x, weight, bias, y, n, row_vectors, x_row_stride, eps);
}

template <class T, int kElements, RowOwner kOwner>
__global__ void __launch_bounds__(element_row_threads(kOwner), element_row_blocks(kOwner, kElements))
    layer_norm_cuda_v2a_any_alignment_kernel(const T* x, const T* weight, const T* bias, T* y, int64_t n, int d,
                                             int64_t x_row_stride, float eps) {
  one_pass<T, kElements, 1, kOwner == RowOwner::kBlock, kOwner != RowOwner::kLanes>(x, weight, bias, y, n, d,
                                                                                    x_row_stride, eps);
}

// partial[row, split] = the spread of the split; its mean is a distance from the first element of the row.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    layer_norm_cuda_v3_parts_kernel(const T* x, Spread* partial, int64_t d, int64_t x_row_stride) {
  __shared__ typename BlockReduction<Spread>::Scratch scratch;
  const T* in = x + blockIdx.x * x_row_stride;
  const RowPart<T, kWidth> part(in, d, blockIdx.y, gridDim.y);
  const double origin = to_float(in[0]), center = to_float(in[part.first()]);
  Distances distances{};
  int64_t count = 0;
  part.walk([&](int64_t at, auto width) {
    const auto values = load_vector<width>(in + at);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const double distance = to_float(values[e]) - center;
      distances = distances + Distances{distance, distance * distance};
    }
    count += width;
  });
  const Spread own = spread_about(center - origin, distances, static_cast<double>(count));
  const Spread all = BlockReduction<Spread>(scratch).reduce(own, Spread{}, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = all;
}

template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    layer_norm_cuda_v3_split_rows_kernel(const T* x, const T* weight, const T* bias, T* y, const Spread* partial,
                                         int64_t d, int64_t x_row_stride, double eps) {
  __shared__ typename BlockReduction<Spread>::Scratch scratch;
  wait_for_previous_kernel();
  Spread all{};
  for (int split = threadIdx.x; split < gridDim.y; split += kThreads)
    all = all + partial[blockIdx.x * int64_t{gridDim.y} + split];
  all = BlockReduction<Spread>(scratch).reduce(all, Spread{}, Add{});
  const double scale = 1 / sqrt(all.squares / d + eps);

  const T* in = x + blockIdx.x * x_row_stride;
  T* out = y + blockIdx.x * d;
  const double origin = to_float(in[0]);
  RowPart<T, kWidth>(in, d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    Vector<T, width> values = load_vector<width>(in + at), gains, offsets;
    if (weight) gains = load_anywhere<width>(weight + at);
    if (bias) offsets = load_anywhere<width>(bias + at);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const A gain = weight ? static_cast<A>(to_float(gains[e])) : A{1};
      const A offset = bias ? static_cast<A>(to_float(offsets[e])) : A{0};
      values[e] = round_to<T>(static_cast<A>((to_float(values[e]) - origin - all.mean) * scale) * gain + offset);
    }
    store_vector<CachePolicy::kStreaming>(out + at, values);
  });
}

template <class T, int kWidth>
void launch_split_rows(const LayerNormArgs& args, Queue& queue) {
  const int64_t splits = row_splits(args.n, args.d);
  const auto x = static_cast<const T*>(args.x);
  auto* partial = queue.scratch<Spread>(args.n * splits);
  LaunchShape shape{{args.n, splits}, kThreads};
  queue.launch(layer_norm_cuda_v3_parts_kernel<T, kWidth>, shape, x, partial, args.d, args.x_row_stride);
  shape.early = can_launch_early(queue);
  queue.launch(layer_norm_cuda_v3_split_rows_kernel<T, kWidth>, shape, x, static_cast<const T*>(args.weight),
               static_cast<const T*>(args.bias), static_cast<T*>(args.y), partial, args.d, args.x_row_stride, args.eps);
}

template <class T, class Kernel>
void launch_one_pass(const LayerNormArgs& args, const RowPlan& plan, int64_t width, Kernel* kernel, Queue& queue) {
  queue.launch(kernel, early({plan.blocks, {plan.group, plan.rows_per_block}}, queue), static_cast<const T*>(args.x),
               static_cast<const T*>(args.weight), static_cast<const T*>(args.bias), static_cast<T*>(args.y), args.n,
               static_cast<int>(args.d / width), args.x_row_stride, static_cast<float>(args.eps));
}

}  // namespace

void layer_norm_cuda_v0_reference(const LayerNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "layer_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(layer_norm_cuda_v0_reference_kernel<T>, {grid_for(args.n, 128), 128}, static_cast<const T*>(args.x),
                 static_cast<const T*>(args.weight), static_cast<const T*>(args.bias), static_cast<T*>(args.y), args.n,
                 args.d, args.x_row_stride, args.eps);
  });
}

void layer_norm_cuda_v1_block_per_row(const LayerNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "layer_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(layer_norm_cuda_v1_block_per_row_kernel<T>, {grid_for(args.n), row_threads(args.d)},
                 static_cast<const T*>(args.x), static_cast<const T*>(args.weight), static_cast<const T*>(args.bias),
                 static_cast<T*>(args.y), args.n, args.d, args.x_row_stride, static_cast<accumulator_t<T>>(args.eps));
  });
}

void layer_norm_cuda_v2_one_pass(const LayerNormArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const RowPlan plan = plan_rows<T>(args.n, args.d, 5);
    dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, kVectorWidth<T>, layer_norm_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                         queue);
    });
  });
}

void layer_norm_cuda_v2a_any_alignment(const LayerNormArgs& args, Queue& queue) {
  const RowPlan plan = plan_element_rows(args.n, args.d);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_element_rows(plan, [&]<int kElements, RowOwner kOwner>() {
      launch_one_pass<T>(args, plan, 1, layer_norm_cuda_v2a_any_alignment_kernel<T, kElements, kOwner>, queue);
    });
  });
}

void layer_norm_cuda_v3_split_rows(const LayerNormArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "layer_norm", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    if constexpr (!std::is_same_v<T, double>)
      if (rows_lie_alike(size_of(args.dtype), args.n, args.x, args.x_row_stride, args.y, args.d))
        return launch_split_rows<T, kVectorWidth<T>>(args, queue);
    launch_split_rows<T, 1>(args, queue);
  });
}

}  // namespace rooflab::kernels
