// The CUDA rungs of softmax that hold a row in registers: see softmax.h for what they compute.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/common/row_words.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

// Aligned rows consist of whole vectors. Of other rows, floats are accessed one by one, neighbours by neighbouring
// threads. For smaller elements that is slow: there a row consists of the words of 16 bytes that it overlaps, of which
// the first and the last belong to its neighbours, too.
template <class T, int kVectors, RowOwner kOwner, bool kAligned>
struct HeldRow : RowTile<T, kVectors, kVectorWidth<T>, 0, kOwner != RowOwner::kLanes> {
  using Tile = RowTile<T, kVectors, kVectorWidth<T>, 0, kOwner != RowOwner::kLanes>;
  using Elements = RowTile<T, kVectors * Tile::kWidth, 1, 0, kOwner != RowOwner::kLanes>;
  static constexpr bool kByElement = !kAligned && sizeof(T) == sizeof(float);

  // The position of element i of vector v, where elements are accessed one by one.
  __device__ __forceinline__ static int position(int v, int i) { return Elements::place(v * Tile::kWidth + i); }

  // Row number `row` of the `n` that begin at x, if there is one.
  __device__ __forceinline__ void load(const T* x, int64_t row, int64_t n, int d, int64_t stride) {
    const T fill = from_float<T>(-INFINITY);
    const T* from = x + (row < n ? row * stride : 0);
    if (row >= n) d = 0;
    if constexpr (kAligned) return Tile::load(from, d / Tile::kWidth, fill);
    if constexpr (kByElement) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
#pragma unroll
        for (int i = 0; i < Tile::kWidth; ++i) this->vectors[v][i] = position(v, i) < d ? from[position(v, i)] : fill;
      return;
    }
    const RowWords<T> words(from, d, x, n, stride);
    Packed<T, Tile::kWidth> loaded[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (row < n && Tile::place(v) < words.count) loaded[v] = words.load(from, Tile::place(v));
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const auto inside = words.within(loaded[v], Tile::place(v), fill);
#pragma unroll
      for (int i = 0; i < Tile::kWidth; ++i) this->vectors[v][i] = inside[i];
    }
  }

  // result(v) are the floats at the place of vector v.
  template <class Result>
  __device__ __forceinline__ static void store(T* row, int d, Result&& result) {
    if constexpr (kAligned) return Tile::store(row, d / Tile::kWidth, [&](int v, int) { return result(v); });
    if constexpr (kByElement) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const Vector<float, Tile::kWidth> values = result(v);
#pragma unroll
        for (int i = 0; i < Tile::kWidth; ++i)
          if (position(v, i) < d) row[position(v, i)] = values[i];
      }
      return;
    }
    const RowWords<T> words(row, d);
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (Tile::place(v) < words.count) words.store(row, Tile::place(v), from_float<T>(result(v)));
  }
};

template <class T, int kVectors, RowOwner kOwner, bool kLogarithm, bool kAligned>
__device__ __forceinline__ void one_pass(const T* x, T* y, int64_t n, int d, int64_t x_row_stride) {
  using Row = HeldRow<T, kVectors, kOwner, kAligned>;
  constexpr int kWidth = Row::kWidth;
  constexpr bool kBlockPerRow = kOwner == RowOwner::kBlock;
  __shared__ typename BlockReduction<MaxSum<float>>::Scratch scratch;
  BlockReduction<MaxSum<float>> block(scratch);
  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y;
    Row held;
    held.load(x, row, n, d, x_row_stride);

    float maximum = -INFINITY;
    Vector<float, kWidth> values[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      values[v] = to_float(held.vectors[v]);
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
      Row::store(y + row * d, d, [&](int v) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[v][i] = kLogarithm ? values[v][i] - last : values[v][i] * last;
        return values[v];
      });
  }
}

template <class T, int kVectors, RowOwner kOwner, bool kLogarithm>
__global__ void __launch_bounds__(kOwner == RowOwner::kBlock ? kMaxRowThreads : shared_block_threads(kVectors),
                                  kOwner == RowOwner::kBlock ? 1 : 768 / shared_block_threads(kVectors))
    softmax_cuda_v2_one_pass_kernel(const T* x, T* y, int64_t n, int d, int64_t x_row_stride) {
  one_pass<T, kVectors, kOwner, kLogarithm, true>(x, y, n, d, x_row_stride);
}

template <class T, int kVectors, RowOwner kOwner, bool kLogarithm>
__global__ void __launch_bounds__(kOwner == RowOwner::kBlock ? kMaxRowThreads : shared_block_threads(kVectors),
                                  kOwner == RowOwner::kBlock ? 1 : 768 / shared_block_threads(kVectors))
    softmax_cuda_v2a_any_alignment_kernel(const T* x, T* y, int64_t n, int d, int64_t x_row_stride) {
  one_pass<T, kVectors, kOwner, kLogarithm, false>(x, y, n, d, x_row_stride);
}

template <class T, bool kAligned>
void launch_one_pass(const SoftmaxArgs& args, Queue& queue) {
  const auto launch = [&]<int kVectors, RowOwner kOwner>(const RowPlan& plan) {
    const auto kernel = [&]<bool kLogarithm>() {
      if constexpr (kAligned) return softmax_cuda_v2_one_pass_kernel<T, kVectors, kOwner, kLogarithm>;
      return softmax_cuda_v2a_any_alignment_kernel<T, kVectors, kOwner, kLogarithm>;
    };
    queue.launch(args.logarithm ? kernel.template operator()<true>() : kernel.template operator()<false>(),
                 early({plan.blocks, {plan.group, plan.rows_per_block}}, queue), static_cast<const T*>(args.x),
                 static_cast<T*>(args.y), args.n, static_cast<int>(args.d), args.x_row_stride);
  };
  const RowPlan plan = plan_rows<T>(args.n, kAligned ? args.d : softmax_held_elements(args));
  if constexpr (!kAligned && sizeof(T) == sizeof(float))
    if (plan.block_per_row && args.d <= kMaxElementRow) {
      const RowPlan elements = plan_element_rows(args.n, args.d);
      return dispatch_element_rows(elements, [&]<int kElements, RowOwner kOwner>() {
        launch.template operator()<kElements / kVectorWidth<T>, kOwner>(elements);
      });
    }
  dispatch_row_plan<T>(plan, [&]<int kVectors, bool kBlockPerRow>() {
    launch.template operator()<kVectors, kBlockPerRow ? RowOwner::kBlock : RowOwner::kLanes>(plan);
  });
}

}  // namespace

void softmax_cuda_v2_one_pass(const SoftmaxArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() { launch_one_pass<T, true>(args, queue); });
}

void softmax_cuda_v2a_any_alignment(const SoftmaxArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() { launch_one_pass<T, false>(args, queue); });
}

}  // namespace rooflab::kernels
