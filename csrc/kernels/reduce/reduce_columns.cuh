// The kernel behind v1, and behind v2 for columns: a thread takes kWidth neighbouring outputs, and threads may share
// the reduced axis.
#pragma once

#include "kernels/common/row_unit.h"
#include "kernels/common/strided.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/reduce/reduction.cuh"

namespace rooflab::kernels {

// One block folds its tile of outputs over its part of the reduced axis, into y, or into partial[split, outer, inner]
// where there are several parts. Sums in float that overflow on the way are computed again from scaled-down numbers.
template <class R, int kWidth>
__device__ __forceinline__ void reduce_columns(const typename R::Element* x, typename R::Result* y,
                                               typename R::Partial* partial, const ReduceArgs& args,
                                               const ReducePlan& plan, const ReduceEnd& result) {
  using A = typename R::Accumulator;
  constexpr int kUnroll = kWidth > 1 ? 4 : 8;  // loads in flight
  const R fold;
  __shared__ __align__(16) typename R::Folded shared[256 * kWidth];
  typename R::Folded* mine = shared + ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) * kWidth;
  const int64_t begin = plan.step_count * blockIdx.y / plan.splits,
                stop = plan.step_count * (blockIdx.y + 1) / plan.splits;

  overlap_launches();
  for (int64_t tile = blockIdx.x; tile < plan.column_tiles * plan.row_tiles; tile += gridDim.x) {
    int64_t column;
    const int64_t row = divide(tile, plan.column_tiles, column) * blockDim.z + threadIdx.z;
    column = column * blockDim.x + threadIdx.x;
    const bool inside = column < plan.column_count && row < args.outer;
    unsigned missing = inside && threadIdx.y == 0 ? (1u << kWidth) - 1 : 0;  // outputs left for this thread, as bits
    float unit = 1;
    do {
      double origin[kWidth]{}, center[kWidth]{};
      int64_t count = 0;  // of the elements that this thread takes of an output
      const auto value_of = [&](typename R::Element element, int i) { return value_in<R>(element, center[i], unit); };
      A sums[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] = R::template identity<A>();
      if (inside) {
        const typename R::Element* from = x + row * args.outer_stride + column * kWidth * args.inner_stride;
        if constexpr (kOfDistances<R>) {
          const int64_t mine_or_near = min(begin + threadIdx.y, args.reduced - 1);
#pragma unroll
          for (int i = 0; i < kWidth && args.reduced > 0; ++i) {
            origin[i] = accumulated<double>(from[i]);
            center[i] = accumulated<double>(from[mine_or_near * args.reduced_stride + i]);
          }
        }
        int64_t step = begin + threadIdx.y;
        const int64_t apart = blockDim.y * args.reduced_stride;
        const typename R::Element* next = from + step * args.reduced_stride;
        const auto take = [&]<bool kWhole>(int steps) {  // all kUnroll steps, or the last ones
          const auto is_there = [&](int u) { return kWhole || u < steps; };
          Vector<typename R::Element, kWidth> vectors[kUnroll];
#pragma unroll
          for (int u = 0; u < kUnroll; ++u)
            if (is_there(u)) vectors[u] = load_vector<kWidth>(next + u * apart);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            // A sum takes one addition per kUnroll numbers, so that its error stays small; an extreme has none.
            A part = value_of(vectors[0][i], i);
            if (!std::is_base_of_v<Add, R>) part = fold(sums[i], part);
#pragma unroll
            for (int u = 1; u < kUnroll; ++u)
              part = fold(part, is_there(u) ? value_of(vectors[u][i], i) : R::template identity<A>());
            sums[i] = std::is_base_of_v<Add, R> ? fold(sums[i], part) : part;
          }
          count += steps;
        };
        for (; step + (kUnroll - 1) * blockDim.y < stop; step += kUnroll * blockDim.y, next += kUnroll * apart)
          take.template operator()<true>(kUnroll);
        if (step < stop) take.template operator()<false>(static_cast<int>((stop - step + blockDim.y - 1) / blockDim.y));
      }

#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        if constexpr (kOfDistances<R>)
          mine[i] = spread_about(center[i] - origin[i], sums[i], static_cast<double>(count));
        else
          mine[i] = sums[i];
      }
      for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
          for (int i = 0; i < kWidth; ++i) mine[i] = fold(mine[i], mine[half * blockDim.x * kWidth + i]);
      }
      const int64_t at = row * args.inner + column * kWidth;
      if (kWidth > 1 && plan.splits == 1 && unit == 1 && missing) {
        Vector<typename R::Result, kWidth> results;
        bool is_whole = true;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if constexpr (kMayOverflow<R>) is_whole &= isfinite(mine[i]);
          results[i] = finish<R>(mine[i], result);
        }
        if (is_whole) {
          store_vector(y + at, results);
          missing = 0;
        }
      }
      for (int i = 0; i < kWidth; ++i) {
        if (!(missing >> i & 1)) continue;
        typename R::Partial value = mine[i];
        if constexpr (kMayOverflow<R>) {
          if (unit == 1 && !isfinite(mine[i])) continue;
          value /= unit;
        }
        missing &= ~(1u << i);
        if (plan.splits > 1)
          partial[blockIdx.y * args.outer * args.inner + at + i] = value;
        else
          y[at + i] = kMayOverflow<R> && unit == 1 ? finish<R>(mine[i], result) : finish<R>(value, result);
      }
      unit = kSmallUnit;
    } while (__syncthreads_or(missing));
  }
}

}  // namespace rooflab::kernels
