// The CUDA rungs of rms_norm_backward: see rms_norm_backward.h for what they compute.
#include "kernels/common/column_sums.cuh"
#include "kernels/common/norm_backward_split.cuh"
#include "kernels/rms_norm_backward/rms_norm_backward.h"

namespace rooflab::kernels {
namespace {

// `partial` holds the sums for dweight, one row per block.
template <class T>
__global__ void __launch_bounds__(512)
    rms_norm_backward_cuda_v1_block_per_row_kernel(const T* dy, const T* x, const T* weight, T* dx, float* partial,
                                                   int64_t n, int64_t d, int64_t dy_row_stride, int64_t x_row_stride,
                                                   float eps, float offset) {
  __shared__ typename BlockReduction<Sums<float, 2>>::Scratch scratch;
  BlockReduction<Sums<float, 2>> block(scratch);
  for (int64_t row = blockIdx.x; row < n; row += gridDim.x) {
    const T *slope = dy + row * dy_row_stride, *in = x + row * x_row_stride;
    float unit = 1;
    float square, product;  // the means of x^2 and dn x, where x is multiplied by unit
    const auto value = [&](int64_t i) { return to_float(in[i]) * unit; };
    const auto gained = [&](int64_t i) { return to_float(slope[i]) * (weight ? to_float(weight[i]) + offset : 1.0f); };
    const auto measure = [&] {
      const auto own = sum_of_thread(d, [&](int64_t i) {
        return Sums<float, 2>{value(i) * value(i), gained(i) * value(i)};
      });
      const auto sums = reduce_row<true>(own, block);
      square = sums.of[0] / d;
      product = sums.of[1] / d;
    };
    measure();
    unit = row_unit(square + eps);  // the same in all threads
    if (unit != 1) measure();
    const float scale = 1.0f / sqrtf(square + eps * unit * unit), along = product * scale;
    for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
      const float normal = value(i) * scale;
      dx[row * d + i] = from_float<T>((gained(i) - normal * along) * unit * scale);
      if (!partial) continue;
      float& sum = partial[blockIdx.x * d + i];  // only this thread adds to this sum
      sum = (row == blockIdx.x ? 0.0f : sum) + to_float(slope[i]) * normal;
    }
  }
}

// What a thread holds of a row: x and dn, in float, so that they are converted once; and what the gradient needs to
// know about the whole row: n = x scale, dx = (dn - n along) scale. Rows whose squares leave float's range are
// multiplied by a power of two, the unit: first x, and later dn, in which dx is linear.
template <class Tile, int kVectors, bool kRowsShareWarps>
struct HeldRow {
  static constexpr int kWidth = Tile::kWidth;
  Vector<float, kWidth> x[kVectors], dn[kVectors];
  float scale, along;

  // reduce(sums) adds over the threads of the row.
  template <class Reduce>
  __device__ __forceinline__ void find(const Tile& slopes, const Tile& values, const float* gains, float per_element,
                                       float eps, Reduce&& reduce) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      x[v] = to_float(values.vectors[v]);
      dn[v] = times_gain(slopes, v, gains);
    }
    float square, product;  // the means of x^2 and dn x
    const auto measure = [&] {
      const auto sums = reduce(sum_of_vectors<kVectors, kWidth>([&](int v, int i) {
        return Sums<float, 2>{x[v][i] * x[v][i], dn[v][i] * x[v][i]};
      }));
      square = sums.of[0] * per_element;
      product = sums.of[1] * per_element;
    };
    measure();
    const float unit = row_unit(square + eps);
    if (kRowsShareWarps ? __any_sync(~0u, unit != 1) : unit != 1) {
      multiply(x, unit);
      measure();
      multiply(dn, unit);
    }
    scale = rsqrtf(square + eps * unit * unit);
    along = product * scale * unit;
  }

  // Returns dx of vector v, and adds its contribution to the sums over rows.
  __device__ __forceinline__ Vector<float, kWidth> gradient(int v, const Vector<float, kWidth>& dy,
                                                            float (&dweight)[kWidth]) const {
    Vector<float, kWidth> dx;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float normal = x[v][i] * scale;
      dweight[i] += dy[i] * normal;
      dx[i] = (dn[v][i] - normal * along) * scale;
    }
    return dx;
  }
};

template <class Tile, int kVectors, bool kBlockPerRow, class T>
__device__ __forceinline__ void one_pass(const T* dy, const T* x, const T* weight, T* dx, float* partial, int64_t n,
                                         int d, int tile, int64_t dy_row_stride, int64_t x_row_stride, float eps,
                                         float offset) {
  __shared__ typename BlockReduction<Sums<float, 2>>::Scratch scratch;
  extern __shared__ __align__(16) float columns[];  // gains, and sums at the end
  BlockReduction<Sums<float, 2>> block(scratch);
  load_gains(columns, weight, offset, d, tile);
  const int row_vectors = d / Tile::kWidth;
  ColumnSums<Tile, kVectors> dweight;
  for_rows_of_block<Tile, kBlockPerRow, false>(
      dy, x, n, d, dy_row_stride, x_row_stride,
      [&](int64_t row, bool is_row, const Tile& slopes, const Tile& values, auto&&) {
        HeldRow<Tile, kVectors, !kBlockPerRow> held;
        held.find(slopes, values, columns, 1.0f / d, eps,
                  [&](Sums<float, 2> sums) { return reduce_row<kBlockPerRow>(sums, block); });
        if (!is_row) return;
        Tile::store(dx + row * d, row_vectors,
                    [&](int v, int) { return held.gradient(v, to_float(slopes.vectors[v]), dweight.sums[v]); });
      });
  if (partial) dweight.store(partial + blockIdx.x * int64_t{d}, row_vectors, columns);
}

template <class T, int kVectors, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kColumnSumRowThreads : kColumnSumThreads, kBlockPerRow ? 1 : 2)
    rms_norm_backward_cuda_v2_one_pass_kernel(const T* dy, const T* x, const T* weight, T* dx, float* partial,
                                              int64_t n, int d, int tile, int64_t dy_row_stride, int64_t x_row_stride,
                                              float eps, float offset) {
  one_pass<ColumnSumTile<T, kVectors, kBlockPerRow>, kVectors, kBlockPerRow>(dy, x, weight, dx, partial, n, d, tile,
                                                                             dy_row_stride, x_row_stride, eps, offset);
}

template <class T, int kElements, bool kBlockPerRow>
__global__ void __launch_bounds__(kBlockPerRow ? kColumnSumRowThreads : kColumnSumThreads, kBlockPerRow ? 1 : 2)
    rms_norm_backward_cuda_v2a_any_alignment_kernel(const T* dy, const T* x, const T* weight, T* dx, float* partial,
                                                    int64_t n, int d, int tile, int64_t dy_row_stride,
                                                    int64_t x_row_stride, float eps, float offset) {
  one_pass<ColumnSumElements<T, kElements>, kElements, kBlockPerRow>(dy, x, weight, dx, partial, n, d, tile,
                                                                     dy_row_stride, x_row_stride, eps, offset);
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

template <class T, class Kernel>
void launch_one_pass(const RmsNormBackwardArgs& args, const ColumnSumPlan& plan, float* partial, Kernel* kernel,
                     Queue& queue) {
  if (plan.blocks > 0)
    queue.launch(kernel, {plan.blocks, {plan.group, plan.rows_per_block}, plan.tile * 4},
                 static_cast<const T*>(args.dy), static_cast<const T*>(args.x), static_cast<const T*>(args.weight),
                 static_cast<T*>(args.dx), partial, args.n, static_cast<int>(args.d), static_cast<int>(plan.tile),
                 args.dy_row_stride, args.x_row_stride, static_cast<float>(args.eps),
                 static_cast<float>(args.zero_centered));
}

// v3: of a part of a row, sums of x^2 and of dn x.
struct RmsPart {
  using Sums = RmsPart;
  double squares, product;

  __device__ __forceinline__ void add(double x, double dn) {
    squares += x * x;
    product += dn * x;
  }
  __device__ __forceinline__ RmsPart part() const { return *this; }
  __device__ __forceinline__ RmsPart operator+(const RmsPart& other) const {
    return {squares + other.squares, product + other.product};
  }
  __device__ __forceinline__ RowGradient of_row(int64_t d, double eps) const {
    const double scale = 1 / sqrt(squares / d + eps);
    return {0, scale, 0, product / d * scale};
  }
};
static_assert(sizeof(RmsPart) == kRmsNormBackwardPart);

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
    dispatch_column_sums<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, partial, rms_norm_backward_cuda_v2_one_pass_kernel<T, kVectors, kBlockPerRow>,
                         queue);
    });
    add_blocks<T>(args, partial, plan.blocks, queue);
  });
}

void rms_norm_backward_cuda_v2a_any_alignment(const RmsNormBackwardArgs& args, Queue& queue) {
  const ColumnSumPlan plan = rms_norm_backward_plan(args, queue.target());
  float* partial = partial_sums(args, plan.blocks, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    dispatch_column_sum_elements<T>(plan, [&]<int kElements, bool kBlockPerRow>() {
      launch_one_pass<T>(args, plan, partial,
                         rms_norm_backward_cuda_v2a_any_alignment_kernel<T, kElements, kBlockPerRow>, queue);
    });
    add_blocks<T>(args, partial, plan.blocks, queue);
  });
}

void rms_norm_backward_cuda_v3_split_rows(const RmsNormBackwardArgs& args, Queue& queue) {
  const SplitNormScratch<RmsPart> scratch(args.n, args.d, args.has_dweight, queue);
  dispatch_tile_type(args.dtype, [&]<class T>() {
    launch_norm_backward(NormGradient<T>{static_cast<const T*>(args.dy), static_cast<const T*>(args.x),
                                         static_cast<const T*>(args.weight), static_cast<T*>(args.dx), scratch.sums,
                                         nullptr, args.n, args.d, args.dy_row_stride, args.x_row_stride, args.eps,
                                         static_cast<float>(args.zero_centered)},
                         scratch.parts, rms_norm_backward_has_vectors(args), queue);
    add_blocks<T>(args, scratch.sums, SplitColumns(args.n, args.d).row_blocks, queue);
  });
}

}  // namespace rooflab::kernels
