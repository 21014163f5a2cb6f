// The CUDA rungs of rms_norm_backward: see rms_norm_backward.h for what they compute.
#include "kernels/common/column_sums.cuh"
#include "kernels/rms_norm_backward/rms_norm_backward.h"

namespace rooflab::kernels {
namespace {

// What a row's gradient needs of the whole row: n = x r, dx = r (dn - n along).
struct RowStatistics {
  float r, along;
};

// `sums(unit)`: of (x unit)^2 and of dn x unit over the row, the same in all of its threads.
template <bool kRowsShareWarps, class Sums>
__device__ __forceinline__ RowStatistics row_statistics(float per_element, float eps, Sums&& sums) {
  SumPair sum = sums(1.0f);
  const float unit = row_unit(sum.a * per_element + eps);
  if (kRowsShareWarps ? __any_sync(~0u, unit != 1) : unit != 1) sum = sums(unit);
  const float scale = 1.0f / sqrtf(sum.a * per_element + eps * unit * unit);
  return {scale * unit, scale * sum.b * per_element};
}

// Sums for dweight are kept in `partial`, a row a block.
template <class T>
__global__ void __launch_bounds__(512)
    rms_norm_backward_cuda_v1_block_per_row_kernel(const T* dy, const T* x, const T* weight, T* dx, float* partial,
                                                   int64_t n, int64_t d, int64_t dy_row_stride, int64_t x_row_stride,
                                                   float eps, float offset) {
  __shared__ typename BlockReduction<SumPair>::Scratch scratch;
  BlockReduction<SumPair> block(scratch);
  const auto gain = [&](int64_t i) { return weight ? to_float(weight[i]) + offset : 1.0f; };
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T *slope = dy + row * dy_row_stride, *in = x + row * x_row_stride;
    const RowStatistics statistics = row_statistics<false>(1.0f / d, eps, [&](float unit) {
      SumPair sum{0, 0};
      for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
        const float value = to_float(in[i]) * unit;
        sum.a += value * value;
        sum.b += to_float(slope[i]) * gain(i) * value;
      }
      return reduce_row<true>(sum, block);
    });
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const float dy_i = to_float(slope[i]), normal = to_float(in[i]) * statistics.r;
      dx[row * d + i] = from_float<T>((dy_i * gain(i) - normal * statistics.along) * statistics.r);
      if (!partial) continue;
      float& sum = partial[blockIdx.x * d + i];  // of this thread alone
      sum = (row == blockIdx.x ? 0.0f : sum) + dy_i * normal;
    }
  }
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kColumnSumRowThreads : kColumnSumThreads, kBlockPerRow ? 1 : 2)
    rms_norm_backward_cuda_v2_one_pass_kernel(const T* dy, const T* x, const T* weight, T* dx, float* partial,
                                              int64_t n, int row_vectors, int64_t dy_row_stride, int64_t x_row_stride,
                                              float eps, float offset) {
  using Tile = RowTile<T, kVectors>;
  using Sums = ColumnSums<kVectors, Tile::kWidth>;
  constexpr int kWidth = Tile::kWidth;
  __shared__ typename BlockReduction<SumPair>::Scratch scratch;
  __shared__ float columns[kBlockPerRow ? 1 : Sums::kSharedFloats];
  BlockReduction<SumPair> block(scratch);
  const float per_element = 1.0f / (row_vectors * kWidth);
  Sums dweight;
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Tile slopes, values;
    slopes.load(dy + row * dy_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    values.load(x + row * x_row_stride, row < n ? row_vectors : 0, from_float<T>(0.0f));
    if (const int64_t next = row + gridDim.x * int64_t{blockDim.y}; next < n) {
      prefetch_row<T, kVectors>(dy + next * dy_row_stride, row_vectors);
      prefetch_row<T, kVectors>(x + next * x_row_stride, row_vectors);
    }
    // dy times the gain of vector v; beyond the row's end dy is 0, and no gain is read.
    const auto gained = [&](int v) {
      Vector<float, kWidth> out = to_float(slopes.vectors[v]);
      const int at = (threadIdx.x + v * blockDim.x) * kWidth;
      if (weight && at < row_vectors * kWidth) {
        const Vector<float, kWidth> gain = load_parameter<kWidth>(weight, at);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) out[i] *= gain[i] + offset;
      }
      return out;
    };
    const RowStatistics statistics = row_statistics<!kBlockPerRow>(per_element, eps, [&](float unit) {
      SumPair sum{0, 0};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const Vector<float, kWidth> dn = gained(v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          const float value = to_float(values.vectors[v][i]) * unit;
          sum.a += value * value;
          sum.b += dn[i] * value;
        }
      }
      return reduce_row<kBlockPerRow>(sum, block);
    });
    if (row >= n) continue;
    values.store(dx + row * row_vectors * kWidth, row_vectors, [&](int v, int) {
      Vector<float, kWidth> out = gained(v);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float normal = to_float(values.vectors[v][i]) * statistics.r;
        dweight.sums[v][i] += to_float(slopes.vectors[v][i]) * normal;
        out[i] = (out[i] - normal * statistics.along) * statistics.r;
      }
      return out;
    });
  }
  if (partial) dweight.store(partial + blockIdx.x * int64_t{row_vectors} * kWidth, row_vectors, columns);
}

// Scratch for the sums of `blocks` blocks; null where dweight is not wanted.
float* partial_sums(const RmsNormBackwardArgs& args, int64_t blocks, Queue& queue) {
  return args.has_dweight && blocks > 0 ? queue.scratch<float>(blocks * args.d) : nullptr;
}

template <class T>
void add_blocks(const RmsNormBackwardArgs& args, const float* partial, int64_t blocks, Queue& queue) {
  if (args.has_dweight)
    launch_column_sums<T>(queue, partial, blocks, args.d, 1, static_cast<T*>(args.dweight), nullptr);
}

}  // namespace

void rms_norm_backward_cuda_v1_block_per_row(const RmsNormBackwardArgs& args, Queue& queue) {
  const int64_t blocks = walking_blocks(args.n, queue.target());
  float* partial = partial_sums(args, blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    if (blocks > 0)
      queue.launch(rms_norm_backward_cuda_v1_block_per_row_kernel<T>, {blocks, row_threads(args.d)},
                   static_cast<const T*>(args.dy), static_cast<const T*>(args.x), static_cast<const T*>(args.weight),
                   static_cast<T*>(args.dx), partial, args.n, args.d, args.dy_row_stride, args.x_row_stride,
                   static_cast<float>(args.eps), static_cast<float>(args.zero_centered));
    add_blocks<T>(args, partial, blocks, queue);
  });
}

void rms_norm_backward_cuda_v2_one_pass(const RmsNormBackwardArgs& args, Queue& queue) {
  const ColumnSumPlan plan = rms_norm_backward_plan(args, queue.target());
  float* partial = partial_sums(args, plan.blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    if (plan.blocks > 0)
      dispatch_column_sums<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
        queue.launch(rms_norm_backward_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                     {plan.blocks, {plan.group, plan.rows_per_block}}, static_cast<const T*>(args.dy),
                     static_cast<const T*>(args.x), static_cast<const T*>(args.weight), static_cast<T*>(args.dx),
                     partial, args.n, static_cast<int>(args.d / kVectorWidth<T>), args.dy_row_stride, args.x_row_stride,
                     static_cast<float>(args.eps), static_cast<float>(args.zero_centered));
      });
    add_blocks<T>(args, partial, plan.blocks, queue);
  });
}

}  // namespace rooflab::kernels
