// The CUDA rungs of layer_norm_backward: see layer_norm_backward.h for what they compute.
#include "kernels/common/column_sums.cuh"
#include "kernels/common/norm_backward_split.cuh"
#include "kernels/common/spread.cuh"
#include "kernels/layer_norm_backward/layer_norm_backward.h"

namespace rooflab::kernels {
namespace {

// The mean of dn times the distance, were the distances from the exact mean. An infinite mean_dn needs no correction:
// it would make NaN of what is infinite already.
template <class A>
__device__ __forceinline__ A corrected(A product, A rest, A mean_dn) {
  return isfinite(mean_dn) ? product - rest * mean_dn : product;
}

// `dweight` and `dbias` hold sums for the gradients, one row per block; null where they are not wanted.
template <class T>
__global__ void __launch_bounds__(512)
    layer_norm_backward_cuda_v1_block_per_row_kernel(const T* dy, const T* x, const T* weight, T* dx, float* dweight,
                                                     float* dbias, int64_t n, int64_t d, int64_t dy_row_stride,
                                                     int64_t x_row_stride, float eps) {
  __shared__ typename BlockReduction<Sums<float, 2>>::Scratch mean_scratch;
  __shared__ typename BlockReduction<Sums<float, 3>>::Scratch scratch;
  BlockReduction<Sums<float, 2>> mean_block(mean_scratch);
  BlockReduction<Sums<float, 3>> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T *slope = dy + row * dy_row_stride, *in = x + row * x_row_stride;
    float unit = 1, mean, rest, variance;  // of x times unit; rest: what the rounded mean lacks
    float mean_dn, product;                // the means of dn, and of dn times the distance from the mean
    // Always rounded in the same way, so that subtracting the mean leaves exactly 0 where all values are equal.
    const auto gained = [&](int64_t i) {
      const float dy_i = to_float(slope[i]);
      return weight ? __fmul_rn(dy_i, to_float(weight[i])) : dy_i;
    };
    const auto distance = [&](int64_t i) { return to_float(in[i]) * unit - mean; };
    const auto correct = [&] {
      const auto own = sum_of_thread(d, [&](int64_t i) {
        const float c = distance(i);
        return Sums<float, 3>{c, c * c, gained(i) * c};
      });
      const auto sums = reduce_row<true>(own, block);
      rest = sums.of[0] / d;
      const float square = sums.of[1] / d;
      variance = above_zero(square - rest * rest);
      product = corrected(sums.of[2] / d, rest, mean_dn);
      return square;
    };
    const auto measure = [&] {
      const auto own = sum_of_thread(d, [&](int64_t i) { return Sums<float, 2>{to_float(in[i]) * unit, gained(i)}; });
      const auto sums = reduce_row<true>(own, mean_block);
      mean = sums.of[0] / d;
      mean_dn = sums.of[1] / d;
    };
    measure();
    for (int corrections = 0;; ++corrections) {  // mostly one
      const float square = correct();
      if (corrections == 0 && row_unit(variance + eps, mean) != 1) {  // the same in all threads
        unit = row_unit(variance + eps, mean);
        measure();
      } else if (corrections < 2 && variance < square / 8) {  // the mean is off by more than the numbers differ
        mean += rest;
      } else {
        break;
      }
    }
    const float scale = inverse_deviation(variance, eps, unit), along = product * scale;
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const float dy_i = to_float(slope[i]), normal = (distance(i) - rest) * scale;
      dx[row * d + i] = from_float<T>((gained(i) - mean_dn - normal * along) * unit * scale);
      const int64_t at = blockIdx.x * d + i;  // only this thread adds to this sum
      const bool is_first = row == blockIdx.x;
      if (dweight) dweight[at] = (is_first ? 0.0f : dweight[at]) + dy_i * normal;
      if (dbias) dbias[at] = (is_first ? 0.0f : dbias[at]) + dy_i;
    }
  }
}

// What a thread holds of a row: c and dn, in float, so that they are converted once; and what the gradient needs to
// know about the whole row: n = c scale - shift, dx = (dn - mean_dn - n along) scale. c is the distance from the
// rounded mean, and the shift stands for what that mean lacks. Rows whose squares leave float's range are multiplied by
// a power of two, the unit: first c, and later dn, in which dx is linear.
template <class Tile, int kVectors, bool kRowsShareWarps>
struct HeldRow {
  static constexpr int kWidth = Tile::kWidth;
  Vector<float, kWidth> c[kVectors], dn[kVectors];
  float mean_dn, scale, shift, along;

  // reduce(sums) adds over the threads of the row. again(values) reloads the row, which is rarely needed.
  template <class Again, class Reduce>
  __device__ __forceinline__ void find(const Tile& slopes, Tile& values, const float* gains, int row_vectors,
                                       float per_element, float eps, Again&& again, Reduce&& reduce) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) dn[v] = times_gain(slopes, v, gains);
    float mean, rest, square, variance, product;
    const auto centre = [&](float by) {  // subtracts `by` from c, and measures what is left
      Sums<float, 3> sums{};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (Tile::place(v) >= row_vectors) continue;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          c[v][i] -= by;
          sums.of[0] += c[v][i];
          sums.of[1] += c[v][i] * c[v][i];
          sums.of[2] += dn[v][i] * c[v][i];
        }
      }
      sums = reduce(sums);
      rest = sums.of[0] * per_element;
      square = sums.of[1] * per_element;
      variance = above_zero(square - rest * rest);
      product = corrected(sums.of[2] * per_element, rest, mean_dn);
    };
    const auto measure = [&](float unit) {
      Sums<float, 3> sums{};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        c[v] = to_float(values.vectors[v]);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          sums.of[0] += c[v][i] *= unit;
          sums.of[1] += dn[v][i];
        }
      }
      sums = reduce(sums);
      mean = __fmul_rn(sums.of[0], per_element);  // not fused into what it is subtracted from
      mean_dn = sums.of[1] * per_element;
    };
    const auto any = [](bool wanted) { return kRowsShareWarps ? __any_sync(~0u, wanted) != 0 : wanted; };
    float unit = 1.0f;
    measure(unit);
    float by = mean;
    for (int corrections = 0;; ++corrections) {  // mostly one; a loop, because copies of the code would need registers
      centre(by);
      if (corrections == 0 && any(leaves_range(variance + eps))) {
        unit = row_unit(variance + eps, mean);
        again(values);
        measure(unit);
        by = mean;
      } else if (corrections < 2 && any(variance < square * 0.125f)) {  // the mean is off by more than numbers differ
        const float rounded = mean;
        mean += rest;
        by = mean - rounded;
      } else {
        break;
      }
    }
    if (any(unit != 1.0f)) multiply(dn, unit);
    scale = inverse_deviation(variance, eps, unit);
    shift = rest * scale;
    along = product * scale * unit;
    mean_dn *= unit;
  }

  // Returns dx of vector v, and adds its contribution to the sums over rows.
  __device__ __forceinline__ Vector<float, kWidth> gradient(int v, const Vector<float, kWidth>& dy,
                                                            float (&dweight)[kWidth], float (&dbias)[kWidth]) const {
    Vector<float, kWidth> dx;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float normal = c[v][i] * scale - shift;
      dweight[i] += dy[i] * normal;
      dbias[i] += dy[i];
      dx[i] = (dn[v][i] - mean_dn - normal * along) * scale;
    }
    return dx;
  }
};

template <class Tile, int kVectors, bool kBlockPerRow, class T>
__device__ __forceinline__ void one_pass(const T* dy, const T* x, const T* weight, T* dx, float* dweight, float* dbias,
                                         int64_t n, int d, int tile, int64_t dy_row_stride, int64_t x_row_stride,
                                         float eps) {
  __shared__ typename BlockReduction<Sums<float, 3>>::Scratch scratch;
  extern __shared__ __align__(16) float columns[];  // gains, and sums at the end
  BlockReduction<Sums<float, 3>> block(scratch);
  load_gains(columns, weight, 0.0f, d, tile);
  const int row_vectors = d / Tile::kWidth;
  ColumnSums<Tile, kVectors> of_weight, of_bias;
  constexpr bool kLoadsAhead = kBlockPerRow && sizeof(T) == 2 && Tile::kWidth > 1;  // for more there are no registers
  for_rows_of_block<Tile, kBlockPerRow, kLoadsAhead>(
      dy, x, n, d, dy_row_stride, x_row_stride,
      [&](int64_t row, bool is_row, const Tile& slopes, Tile& values, auto&& reload) {
        HeldRow<Tile, kVectors, !kBlockPerRow> held;
        held.find(slopes, values, columns, row_vectors, 1.0f / d, eps, reload,
                  [&](Sums<float, 3> sums) { return reduce_row<kBlockPerRow>(sums, block); });
        if (!is_row) return;
        Tile::store(dx + row * d, row_vectors, [&](int v, int) {
          return held.gradient(v, to_float(slopes.vectors[v]), of_weight.sums[v], of_bias.sums[v]);
        });
      });
  const int64_t own = blockIdx.x * int64_t{d};
  if (dweight) of_weight.store(dweight + own, row_vectors, columns);
  if (dbias) of_bias.store(dbias + own, row_vectors, columns);
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kColumnSumRowThreads : kColumnSumThreads, kBlockPerRow ? 1 : 2)
    layer_norm_backward_cuda_v2_one_pass_kernel(const T* dy, const T* x, const T* weight, T* dx, float* dweight,
                                                float* dbias, int64_t n, int d, int tile, int64_t dy_row_stride,
                                                int64_t x_row_stride, float eps) {
  one_pass<ColumnSumTile<T, kVectors, kBlockPerRow>, kVectors, kBlockPerRow>(dy, x, weight, dx, dweight, dbias, n, d,
                                                                             tile, dy_row_stride, x_row_stride, eps);
}

template <class T, int kElements, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kColumnSumRowThreads : kColumnSumThreads, kBlockPerRow ? 1 : 2)
    layer_norm_backward_cuda_v2a_any_alignment_kernel(const T* dy, const T* x, const T* weight, T* dx, float* dweight,
                                                      float* dbias, int64_t n, int d, int tile, int64_t dy_row_stride,
                                                      int64_t x_row_stride, float eps) {
  one_pass<ColumnSumElements<T, kElements>, kElements, kBlockPerRow>(dy, x, weight, dx, dweight, dbias, n, d, tile,
                                                                     dy_row_stride, x_row_stride, eps);
}

// The sums of `blocks` blocks: those for dweight, then those for dbias.
class Partials {
 public:
  Partials(const LayerNormBackwardArgs& args, int64_t blocks, float* scratch)
      : args_(args), blocks_(blocks), all_(scratch) {}
  Partials(const LayerNormBackwardArgs& args, int64_t blocks, Queue& queue)
      : Partials(args, blocks,
                 args.sums() > 0 && blocks > 0 ? queue.scratch<float>(args.sums() * blocks * args.d) : nullptr) {}

  float* dweight() const { return args_.has_dweight ? all_ : nullptr; }
  float* dbias() const { return args_.has_dbias && all_ ? all_ + args_.has_dweight * blocks_ * args_.d : nullptr; }

  template <class T>
  void add_up(Queue& queue) const {
    T *of_weight = static_cast<T*>(args_.dweight), *of_bias = static_cast<T*>(args_.dbias);
    if (args_.sums() > 0)
      launch_column_sums<T>(queue, all_, blocks_, args_.d, args_.sums(), of_weight ? of_weight : of_bias, of_bias);
  }

 private:
  const LayerNormBackwardArgs& args_;
  int64_t blocks_;
  float* all_;
};

template <class T, class Kernel>
void launch_one_pass(const LayerNormBackwardArgs& args, const ColumnSumPlan& plan, const Partials& partials,
                     Kernel* kernel, Queue& queue) {
  if (plan.blocks > 0)
    queue.launch(kernel, {plan.blocks, {plan.group, plan.rows_per_block}, plan.tile * 4},
                 static_cast<const T*>(args.dy), static_cast<const T*>(args.x), static_cast<const T*>(args.weight),
                 static_cast<T*>(args.dx), partials.dweight(), partials.dbias(), args.n, static_cast<int>(args.d),
                 static_cast<int>(plan.tile), args.dy_row_stride, args.x_row_stride, static_cast<float>(args.eps));
}

// v3: of a part of a row, the spread of x, and sums of dn and of dn times the distance from the part's mean.
struct CenteredPart {
  // Distances are from the thread's first number.
  struct Sums {
    double count, center, dn, product;
    Distances distances;

    __device__ __forceinline__ void add(double x, double slope) {
      if (count == 0) center = x;
      const double distance = x - center;
      distances = distances + Distances{distance, distance * distance};
      dn += slope;
      product += slope * distance;
      count += 1;
    }
    __device__ __forceinline__ CenteredPart part() const {
      const Spread spread = spread_about(center, distances, count);
      return {spread, dn, about(spread.mean, center, dn, product)};
    }
  };

  // The sum of dn times the distance from `mean`, of one from `other`.
  static __device__ __forceinline__ double about(double mean, double other, double dn, double product) {
    return corrected(product, mean - other, dn);
  }
  __device__ __forceinline__ CenteredPart operator+(const CenteredPart& b) const {
    const Spread both = spread + b.spread;
    return {both, dn + b.dn,
            about(both.mean, spread.mean, dn, product) + about(both.mean, b.spread.mean, b.dn, b.product)};
  }
  __device__ __forceinline__ RowGradient of_row(int64_t d, double eps) const {
    const double scale = 1 / sqrt(spread.squares / d + eps);
    return {spread.mean, scale, dn / d, product / d * scale};
  }

  Spread spread;
  double dn, product;
};
static_assert(sizeof(CenteredPart) == kLayerNormBackwardPart);

}  // namespace

void layer_norm_backward_cuda_v1_block_per_row(const LayerNormBackwardArgs& args, Queue& queue) {
  const int64_t blocks = walking_blocks(args.n, queue.target());
  const Partials partials(args, blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    if (blocks > 0)
      queue.launch(layer_norm_backward_cuda_v1_block_per_row_kernel<T>, {blocks, row_threads(args.d)},
                   static_cast<const T*>(args.dy), static_cast<const T*>(args.x), static_cast<const T*>(args.weight),
                   static_cast<T*>(args.dx), partials.dweight(), partials.dbias(), args.n, args.d, args.dy_row_stride,
                   args.x_row_stride, static_cast<float>(args.eps));
    partials.add_up<T>(queue);
  });
}

void layer_norm_backward_cuda_v2_one_pass(const LayerNormBackwardArgs& args, Queue& queue) {
  const ColumnSumPlan plan = layer_norm_backward_plan(args, queue.target());
  const Partials partials(args, plan.blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_column_sums<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, partials, layer_norm_backward_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                         queue);
    });
    partials.add_up<T>(queue);
  });
}

void layer_norm_backward_cuda_v2a_any_alignment(const LayerNormBackwardArgs& args, Queue& queue) {
  const ColumnSumPlan plan = layer_norm_backward_plan(args, queue.target());
  const Partials partials(args, plan.blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_column_sum_elements<T>(plan, [&]<int kElements, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, partials,
                         layer_norm_backward_cuda_v2a_any_alignment_kernel<T, kElements, kBlockPerRow>, queue);
    });
    partials.add_up<T>(queue);
  });
}

void layer_norm_backward_cuda_v3_split_rows(const LayerNormBackwardArgs& args, Queue& queue) {
  const SplitNormScratch<CenteredPart> scratch(args.n, args.d, args.sums(), queue);
  const Partials partials(args, SplitColumns(args.n, args.d).row_blocks, scratch.sums);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    launch_norm_backward(
        NormGradient<T>{static_cast<const T*>(args.dy), static_cast<const T*>(args.x),
                        static_cast<const T*>(args.weight), static_cast<T*>(args.dx), partials.dweight(),
                        partials.dbias(), args.n, args.d, args.dy_row_stride, args.x_row_stride, args.eps, 0.0f},
        scratch.parts, layer_norm_backward_has_vectors(args), queue);
    partials.add_up<T>(queue);
  });
}

}  // namespace rooflab::kernels
