// The backward of a norm where blocks share a row (row_split.h). One kernel measures each part of each row. A second
// one combines the parts of its rows, and walks down its columns: it writes dx, and its sums over rows for the
// gradients of weight and bias (column_sums.h). Rows are measured in double, which no square of a float leaves.
//
// A Part is what is known about a part of a row: `+` combines two, and of_row(d, eps) is what the gradient needs to
// know about all of it. Part::Sums is what a thread accumulates: add(x, dn), then part().
#pragma once

#include "kernels/common/column_sums.cuh"
#include "kernels/common/row_part.cuh"
#include "kernels/common/row_split.h"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {

// n = (x - mean) scale and dx = (dn - mean_dn - n along) scale, where dn is dy times the gain.
struct RowGradient {
  double mean, scale, mean_dn, along;
};

// The operands of both kernels; the gain is weight + offset, or 1 where there is no weight.
template <class T>
struct NormGradient {
  const T *dy, *x, *weight;
  T* dx;
  float *dweight, *dbias;  // (blocks, D) sums; null where they are not wanted
  int64_t n, d, dy_row_stride, x_row_stride;
  double eps;
  float offset;

  template <int kWidth>
  __device__ __forceinline__ void load_gains(int64_t column, float (&gains)[kWidth]) const {
    Vector<T, kWidth> loaded;
    if (weight) loaded = load_anywhere<kWidth>(weight + column);
#pragma unroll
    for (int e = 0; e < kWidth; ++e) gains[e] = weight ? to_float(loaded[e]) + offset : 1.0f;
  }
};

constexpr int kSplitThreads = 256;

template <class Part, int kWidth, class T>
__global__ void __launch_bounds__(kSplitThreads)
    norm_backward_cuda_parts_kernel(const __grid_constant__ NormGradient<T> of, Part* parts) {
  __shared__ typename BlockReduction<Part>::Scratch scratch;
  const T *dy = of.dy + blockIdx.x * of.dy_row_stride, *x = of.x + blockIdx.x * of.x_row_stride;
  typename Part::Sums sums{};
  RowPart<T, kWidth>(x, of.d, blockIdx.y, gridDim.y).walk([&](int64_t at, auto width) {
    const auto slopes = load_vector<width>(dy + at), values = load_vector<width>(x + at);
    float gains[width];
    of.load_gains(at, gains);
#pragma unroll
    for (int e = 0; e < width; ++e) sums.add(to_float(values[e]), double{to_float(slopes[e])} * gains[e]);
  });
  const Part all = BlockReduction<Part>(scratch).reduce(sums.part(), Part{}, Add{});
  if (threadIdx.x == 0) parts[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = all;
}

template <class Part, int kWidth, class T>
__global__ void __launch_bounds__(kSplitThreads)
    norm_backward_cuda_columns_kernel(const __grid_constant__ NormGradient<T> of, const Part* parts, int splits,
                                      int rows_per_block) {
  __shared__ RowGradient rows[kMostBlockRows];
  const int64_t first = blockIdx.y * int64_t{rows_per_block};
  const int count = static_cast<int>(min(int64_t{rows_per_block}, of.n - first));
  wait_for_previous_kernel();
  for (int row = threadIdx.x / kWarp; row < count; row += kSplitThreads / kWarp) {
    Part all{};
    for (int split = threadIdx.x % kWarp; split < splits; split += kWarp)
      all = all + parts[(first + row) * splits + split];
    all = warp_reduce(all, Add{});
    if (threadIdx.x % kWarp == 0) rows[row] = all.of_row(of.d, of.eps);
  }
  __syncthreads();

  const int64_t vectors = of.d / kWidth, end = vectors * (blockIdx.x + 1) / gridDim.x * kWidth;
  for (int64_t i = vectors * blockIdx.x / gridDim.x * kWidth + threadIdx.x * kWidth; i < end;
       i += kSplitThreads * kWidth) {
    float gains[kWidth], of_weight[kWidth] = {}, of_bias[kWidth] = {};
    of.load_gains(i, gains);
    for (int row = 0; row < count; ++row) {
      const RowGradient& at = rows[row];
      const Vector<T, kWidth> slopes = load_vector<kWidth>(of.dy + (first + row) * of.dy_row_stride + i),
                              values = load_vector<kWidth>(of.x + (first + row) * of.x_row_stride + i);
      Vector<T, kWidth> dx;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        const double normal = (to_float(values[e]) - at.mean) * at.scale, dn = double{to_float(slopes[e])} * gains[e];
        dx[e] = from_float<T>(static_cast<float>((dn - at.mean_dn - normal * at.along) * at.scale));
        of_weight[e] += to_float(slopes[e]) * static_cast<float>(normal);
        of_bias[e] += to_float(slopes[e]);
      }
      store_vector(of.dx + (first + row) * of.d + i, dx);
    }
    const int64_t own = blockIdx.y * of.d + i;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      if (of.dweight) of.dweight[own + e] = of_weight[e];
      if (of.dbias) of.dbias[own + e] = of_bias[e];
    }
  }
}

// The scratch of split_norm_footprint(): the parts of all rows, then the sums of all blocks.
template <class Part>
struct SplitNormScratch {
  Part* parts = nullptr;
  float* sums = nullptr;

  SplitNormScratch(int64_t n, int64_t d, int sums_wanted, Queue& queue) {
    if (n == 0) return;
    parts =
        static_cast<Part*>(queue.scratch_bytes(split_norm_footprint(n, d, sizeof(Part), sums_wanted).scratch_bytes));
    sums = sums_wanted > 0 ? reinterpret_cast<float*>(parts + n * row_splits(n, d)) : nullptr;
  }
};

template <class Part, class T>
void launch_norm_backward(const NormGradient<T>& of, Part* parts, bool has_vectors, Queue& queue) {
  if (of.n == 0) return;
  const SplitColumns plan(of.n, of.d);
  const int64_t splits = row_splits(of.n, of.d);
  const bool lie_alike = rows_lie_alike(sizeof(T), of.n, of.x, of.x_row_stride, of.dy, of.dy_row_stride);
  queue.launch(lie_alike ? norm_backward_cuda_parts_kernel<Part, kVectorWidth<T>, T>
                         : norm_backward_cuda_parts_kernel<Part, 1, T>,
               {{of.n, splits}, kSplitThreads}, of, parts);
  LaunchShape shape{{plan.column_blocks, plan.row_blocks}, kSplitThreads};
  shape.early = can_launch_early(queue);
  queue.launch(has_vectors ? norm_backward_cuda_columns_kernel<Part, kVectorWidth<T>, T>
                           : norm_backward_cuda_columns_kernel<Part, 1, T>,
               shape, of, static_cast<const Part*>(parts), static_cast<int>(splits),
               static_cast<int>(plan.rows_per_block));
}

}  // namespace rooflab::kernels
