// The kernel behind v2 for rows: threads share a contiguous row, which may have any length and begin anywhere.
#pragma once

#include "kernels/common/row_unit.h"
#include "kernels/common/row_vectors.cuh"
#include "kernels/reduce/reduction.cuh"

namespace rooflab::kernels {

// Folds what the threads of a row have: up to 32 neighbouring lanes, or a block of several warps.
template <class R, class A>
__device__ __forceinline__ A fold_row(A value, BlockReduction<A>& block) {
  value = warp_reduce(value, R{}, blockDim.x);
  return blockDim.x > kWarp ? block.across_warps(value, R::template identity<A>(), R{}) : value;
}

template <class T, int kWidth>
__device__ __forceinline__ auto as_numbers(const Vector<T, kWidth>& vector) {
  if constexpr (std::is_same_v<T, bool>)
    return vector;
  else
    return to_float(vector);
}

// Folds neighbours first, so that an accumulator takes one addition per vector.
template <class R, int kWidth, class A>
__device__ __forceinline__ A fold_vector(A (&values)[kWidth]) {
#pragma unroll
  for (int half = kWidth / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < half; ++i) values[i] = R{}(values[i], values[i + half]);
  return values[0];
}

// A block of (steps, rows) threads folds a part of its rows, into y, or into partial[part, row] where there are several
// parts. A sum in float that overflows on the way is computed again from scaled-down numbers.
template <class R>
__device__ __forceinline__ void reduce_rows(const typename R::Element* x, typename R::Result* y,
                                            typename R::Partial* partial, const ReduceArgs& args,
                                            const ReducePlan& plan, const ReduceEnd& result) {
  using T = typename R::Element;
  using A = typename R::Accumulator;
  using Folded = typename R::Folded;
  constexpr int kWidth = kVectorWidth<T>, kUnroll = 4;  // loads in flight
  const R fold;
  __shared__ typename BlockReduction<Folded>::Scratch scratch;
  BlockReduction<Folded> block(scratch);

  overlap_launches();
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < args.outer; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = min(first + threadIdx.y, args.outer - 1);  // threads beyond the last row repeat it
    const T* from = x + row * args.outer_stride;
    const RowVectors<T, kWidth> vectors(from, args.reduced);
    const int64_t begin = vectors.count * blockIdx.y / plan.splits + threadIdx.x,
                  end = vectors.count * (blockIdx.y + 1) / plan.splits;
    const int outside = blockIdx.y == 0 ? vectors.outside : 0;

    double origin = 0, center = 0;
    if constexpr (kOfDistances<R>) {
      origin = accumulated<double>(from[0]);
      center = accumulated<double>(from[min(vectors.begin(begin), args.reduced - 1)]);
    }
    const auto folded = [&](float unit) {
      const auto value_of = [&](auto element) { return value_in<R>(element, center, unit); };
      A sums[kUnroll];
#pragma unroll
      for (A& sum : sums) sum = R::template identity<A>();
      int64_t count = 0;  // of the elements that this thread takes
      T first_outside{};  // on its way while the vectors are
      if (static_cast<int>(threadIdx.x) < outside) first_outside = from[vectors.outside_at(threadIdx.x)];
      for (int64_t v = begin; v < end; v += kUnroll * blockDim.x) {
        Vector<T, kWidth> loaded[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u)
          if (v + u * blockDim.x < end) loaded[u] = load_vector<kWidth>(from + vectors.begin(v + u * blockDim.x));
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
          if (v + u * blockDim.x >= end) continue;
          const auto numbers = as_numbers(loaded[u]);
          A values[kWidth];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) values[i] = value_of(numbers[i]);
          sums[u] = fold(sums[u], fold_vector<R>(values));
          count += kWidth;
        }
      }
      for (int k = threadIdx.x; k < outside; k += blockDim.x) {
        const bool is_first = k == static_cast<int>(threadIdx.x);
        sums[0] = fold(sums[0], value_of(is_first ? first_outside : from[vectors.outside_at(k)]));
        ++count;
      }
      const A sum = fold_vector<R>(sums);
      if constexpr (kOfDistances<R>)
        return fold_row<R>(spread_about(center - origin, sum, static_cast<double>(count)), block);
      else
        return fold_row<R>(sum, block);
    };

    const Folded value = folded(1);
    typename R::Partial whole = value;
    bool is_whole = true;
    if constexpr (kMayOverflow<R>) {
      is_whole = isfinite(value);
      if (__any_sync(~0u, !is_whole)) {
        const Folded scaled = folded(kSmallUnit);
        if (!is_whole) whole = typename R::Partial{scaled} / kSmallUnit;
      }
    }
    if (threadIdx.x > 0 || first + threadIdx.y >= args.outer) continue;
    if (plan.splits > 1)
      partial[blockIdx.y * args.outer + row] = whole;
    else
      y[row] = is_whole ? finish<R>(value, result) : finish<R>(whole, result);
  }
}

}  // namespace rooflab::kernels
