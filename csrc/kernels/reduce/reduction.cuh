// What the CUDA rungs of reduce share: the reductions themselves, and the kernels behind v1 and v2.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/row_unit.h"
#include "kernels/common/spread.cuh"
#include "kernels/common/strided.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/reduce/reduce.h"

namespace rooflab::kernels {

// Integers and bool accumulate in int64.
template <class T>
using reduce_accumulator_t = std::conditional_t<std::is_integral_v<T>, int64_t, accumulator_t<T>>;

template <class A, class T>
__device__ __forceinline__ A accumulated(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<A>(value);
  else
    return static_cast<A>(to_float(value));
}

// A thread accumulates in the type Accumulator, the threads of a block fold in the type Folded, and what a block passes
// to the combining kernel has type Partial, because part of a sum may be larger than any float.
template <class T>
struct Sum : Add {
  using Element = T;
  using Accumulator = reduce_accumulator_t<T>;
  using Folded = Accumulator;
  using Partial = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  using Result = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  template <class A>
  static __device__ __forceinline__ A identity() {
    return A{0};
  }
};

struct Times {
  __device__ __forceinline__ double operator()(double a, double b) const { return a * b; }
  __device__ __forceinline__ int64_t operator()(int64_t a, int64_t b) const {  // wraps around
    return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};

template <class T>
struct Product : Times {
  using Element = T;
  using Accumulator = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  using Folded = Accumulator;
  using Partial = Accumulator;
  using Result = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  template <class A>
  static __device__ __forceinline__ A identity() {
    return A{1};
  }
};

template <class T>
struct Variance : Add {
  using Element = T;
  using Accumulator = Distances;
  using Folded = Spread;
  using Partial = Spread;
  using Result = T;
  template <class A>
  static __device__ __forceinline__ A identity() {
    return A{0, 0};
  }
};

// An extreme of bools needs no more than 32 bits.
template <class T>
using extreme_accumulator_t = std::conditional_t<std::is_same_v<T, bool>, int, reduce_accumulator_t<T>>;

template <class T>
struct Maximum : Max {
  using Element = T;
  using Accumulator = extreme_accumulator_t<T>;
  using Folded = Accumulator;
  using Partial = Accumulator;
  using Result = T;
  template <class A>
  static __device__ __forceinline__ A identity() {
    if constexpr (std::is_integral_v<A>)
      return std::numeric_limits<A>::min();
    else
      return -static_cast<A>(INFINITY);
  }
};

template <class T>
struct Minimum : Min {
  using Element = T;
  using Accumulator = extreme_accumulator_t<T>;
  using Folded = Accumulator;
  using Partial = Accumulator;
  using Result = T;
  template <class A>
  static __device__ __forceinline__ A identity() {
    if constexpr (std::is_integral_v<A>)
      return std::numeric_limits<A>::max();
    else
      return static_cast<A>(INFINITY);
  }
};

// What makes a result of a total. The divisor is the count for a mean, the count less the correction for a variance,
// and 1 otherwise.
struct ReduceEnd {
  double divisor;
  bool takes_root;
};
inline ReduceEnd reduce_end(const ReduceArgs& args) {
  const double count = static_cast<double>(args.reduced);
  if (is_spread(args.op)) return {std::max(count - args.correction, 0.0), args.op == ReduceOp::kStd};
  return {args.op == ReduceOp::kMean ? count : 1.0, false};
}

template <class R, class A>
__device__ __forceinline__ typename R::Result finish(const A& value, const ReduceEnd& end) {
  if constexpr (std::is_integral_v<A>) {
    return static_cast<typename R::Result>(value);
  } else if constexpr (std::is_same_v<A, Spread>) {
    const double variance = (value.count > 0 ? value.squares : NAN) / end.divisor;
    return round_to<typename R::Result>(end.takes_root ? sqrt(variance) : variance);
  } else {
    return round_to<typename R::Result>(value / static_cast<A>(end.divisor));
  }
}

// Calls f.operator()<R>() with R the reduction of T that args name.
template <class T, class F>
void dispatch_reduction(const ReduceArgs& args, F&& f) {
  if (args.op == ReduceOp::kMax)
    f.template operator()<Maximum<T>>();
  else if (args.op == ReduceOp::kMin)
    f.template operator()<Minimum<T>>();
  else if (args.op == ReduceOp::kProd)
    f.template operator()<Product<T>>();
  else if (!is_spread(args.op))
    f.template operator()<Sum<T>>();
  else if constexpr (!std::is_integral_v<T>)
    f.template operator()<Variance<T>>();
}

// One block folds its tile of outputs over its part of the reduced axis, into y, or into partial[split, outer, inner]
// where there are several parts. Sums in float that overflow on the way are computed again from scaled-down numbers.
template <class R, int kWidth, bool kAlong>
__device__ __forceinline__ void reduce_tiles(const typename R::Element* x, typename R::Result* y,
                                             typename R::Partial* partial, const ReduceArgs& args,
                                             const ReducePlan& plan, const ReduceEnd& result) {
  using A = typename R::Accumulator;
  constexpr bool kMayOverflow = std::is_same_v<A, float> && std::is_same_v<typename R::Partial, double>;
  constexpr bool kOfDistances = std::is_same_v<A, Distances>;
  constexpr int kFolded = kAlong ? 1 : kWidth, kElementsOfStep = kAlong ? kWidth : 1;
  constexpr int kUnroll = kWidth > 1 ? 4 : 8;  // loads in flight
  const R fold;
  __shared__ typename R::Folded shared[256 * kFolded];
  typename R::Folded* mine = shared + ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) * kFolded;
  const int64_t begin = plan.step_count * blockIdx.y / plan.splits,
                stop = plan.step_count * (blockIdx.y + 1) / plan.splits;
  const int64_t step_stride = kAlong ? kWidth : args.reduced_stride;

  overlap_launches();
  for (int64_t tile = blockIdx.x; tile < plan.column_tiles * plan.row_tiles; tile += gridDim.x) {
    int64_t column;
    const int64_t row = divide(tile, plan.column_tiles, column) * blockDim.z + threadIdx.z;
    column = column * blockDim.x + threadIdx.x;
    const bool inside = column < plan.column_count && row < args.outer;
    unsigned missing = inside && threadIdx.y == 0 ? (1u << kFolded) - 1 : 0;  // outputs left for this thread, as bits
    float unit = 1;
    do {
      // Distances are from `center`, an element of the output. Means are told as distances from `origin`, its first
      // one, because far from 0 they would be rounded too coarsely.
      double origin[kFolded]{}, center[kFolded]{};
      int64_t count = 0;  // of the elements that this thread takes of an output
      const auto value_of = [&](typename R::Element element, int i) {
        if constexpr (kOfDistances) {
          const double distance = accumulated<double>(element) - center[kAlong ? 0 : i];
          return A{distance, distance * distance};
        } else if constexpr (kMayOverflow) {
          return accumulated<A>(element) * unit;
        } else {
          return accumulated<A>(element);
        }
      };
      A sums[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] = R::template identity<A>();
      if (inside) {
        const typename R::Element* from = x + row * args.outer_stride + column * kWidth * args.inner_stride;
        if constexpr (kOfDistances) {
          const int64_t mine_or_near = min((begin + threadIdx.y) * kElementsOfStep, args.reduced - 1);
#pragma unroll
          for (int i = 0; i < kFolded && args.reduced > 0; ++i) {
            origin[i] = accumulated<double>(from[i]);
            center[i] = accumulated<double>(from[mine_or_near * args.reduced_stride + i]);
          }
        }
        int64_t end = stop;
        // Along: the elements outside the aligned vectors of the row, before the first and after the last. They are
        // few.
        int64_t outside = 0, head = 0, gap = 0;
        const typename R::Element* row_begin = from;
        if constexpr (kAlong) {
          head = (kWidth - reinterpret_cast<uintptr_t>(from) / sizeof(*from) % kWidth) % kWidth;
          const int64_t vectors = (args.reduced - head) / kWidth;
          gap = vectors * kWidth;
          if (blockIdx.y == 0) outside = args.reduced - gap;
          end = min(end, vectors);
          from += head;
        }
        const auto outside_element = [&](int64_t k) { return row_begin[k < head ? k : k + gap]; };
        typename R::Element first_outside{};  // of this thread; on its way while the vectors are
        if (threadIdx.y < outside) first_outside = outside_element(threadIdx.y);
        int64_t step = begin + threadIdx.y;
        const int64_t apart = blockDim.y * step_stride;
        const typename R::Element* next = from + step * step_stride;
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
          count += steps * kElementsOfStep;
        };
        for (; step + (kUnroll - 1) * blockDim.y < end; step += kUnroll * blockDim.y, next += kUnroll * apart)
          take.template operator()<true>(kUnroll);
        if (step < end) take.template operator()<false>(static_cast<int>((end - step + blockDim.y - 1) / blockDim.y));
        for (int64_t k = threadIdx.y; k < outside; k += blockDim.y) {
          sums[0] = fold(sums[0], value_of(k == threadIdx.y ? first_outside : outside_element(k), 0));
          ++count;
        }
      }

      if constexpr (kAlong)
#pragma unroll
        for (int i = 1; i < kWidth; ++i) sums[0] = fold(sums[0], sums[i]);
#pragma unroll
      for (int i = 0; i < kFolded; ++i) {
        if constexpr (kOfDistances)
          mine[i] = spread_about(center[i] - origin[i], sums[i], static_cast<double>(count));
        else
          mine[i] = sums[i];
      }
      for (int half = blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half)
#pragma unroll
          for (int i = 0; i < kFolded; ++i) mine[i] = fold(mine[i], mine[half * blockDim.x * kFolded + i]);
      }
      const int64_t at = row * args.inner + column * kFolded;
      for (int i = 0; i < kFolded; ++i) {
        if (!(missing >> i & 1)) continue;
        typename R::Partial value = mine[i];
        if constexpr (kMayOverflow) {
          if (unit == 1 && !isfinite(mine[i])) continue;
          value /= unit;
        }
        missing &= ~(1u << i);
        if (plan.splits > 1)
          partial[blockIdx.y * args.outer * args.inner + at + i] = value;
        else
          y[at + i] = kMayOverflow && unit == 1 ? finish<R>(mine[i], result) : finish<R>(value, result);
      }
      unit = kSmallUnit;
    } while (__syncthreads_or(missing));
  }
}

// A warp for each output, or a block where there are many splits, folds its `splits` partial results.
template <class R>
__global__ void __launch_bounds__(256)
    reduce_cuda_combine_kernel(const typename R::Partial* partial, typename R::Result* y, int64_t outputs,
                               int64_t splits, ReduceEnd result) {
  using A = typename R::Partial;
  __shared__ typename BlockReduction<A>::Scratch scratch;
  BlockReduction<A> block(scratch);
  wait_for_previous_kernel();
  const int64_t teams = gridDim.x * int64_t{blockDim.y};
  for (int64_t output = blockIdx.x * int64_t{blockDim.y} + threadIdx.y; output < outputs; output += teams) {
    const auto part = [&](int64_t split) { return partial[split * outputs + output]; };
    A value = R::template identity<A>();
    if constexpr (std::is_base_of_v<Add, R>)
      value = sum_of_thread(splits, part);
    else
      for (int64_t split = threadIdx.x; split < splits; split += blockDim.x) value = R{}(value, part(split));
    value = warp_reduce(value, R{});
    if (blockDim.x > kWarp) value = block.across_warps(value, R::template identity<A>(), R{});
    if (threadIdx.x == 0) y[output] = finish<R>(value, result);
  }
}

// Launches `kernel` (a wrapper of reduce_tiles) as planned, then folds the parts if there are several.
template <class R, class Kernel>
void launch_reduce(Kernel kernel, const ReduceArgs& args, const ReducePlan& plan, Queue& queue) {
  const auto x = static_cast<const typename R::Element*>(args.x);
  const auto y = static_cast<typename R::Result*>(args.y);
  const auto partial = static_cast<typename R::Partial*>(queue.scratch_bytes(reduce_partial_bytes(args, plan)));
  const int64_t tiles = std::min<int64_t>(plan.column_tiles * plan.row_tiles, INT32_MAX);
  queue.launch(kernel, early({{tiles, plan.splits}, {plan.columns, plan.steps, plan.rows}}, queue), x, y, partial, args,
               plan, reduce_end(args));
  if (plan.splits == 1) return;
  const int64_t outputs = args.outer * args.inner;
  const int lanes = plan.splits > 128 ? 256 : kWarp, teams = plan.splits > 128 ? 1 : 4;
  queue.launch(reduce_cuda_combine_kernel<R>,
               early({std::min<int64_t>((outputs + teams - 1) / teams, INT32_MAX), {lanes, teams}}, queue), partial, y,
               outputs, plan.splits, reduce_end(args));
}

}  // namespace rooflab::kernels
