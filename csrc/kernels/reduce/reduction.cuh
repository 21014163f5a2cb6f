// What the CUDA rungs of reduce share: the reductions themselves, and how parts of a result are folded.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/spread.cuh"
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
    if constexpr (std::is_same_v<T, bool>)
      return 0;  // any of none is false
    else if constexpr (std::is_integral_v<A>)
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

// Whether any element is not 0, and whether all are. NaN is not 0.
template <class T>
struct Any : Max {
  using Element = T;
  using Accumulator = int;
  using Folded = int;
  using Partial = int;
  using Result = bool;
  template <class A>
  static __device__ __forceinline__ A identity() {
    return 0;
  }
};
template <class T>
struct All : Min {
  using Element = T;
  using Accumulator = int;
  using Folded = int;
  using Partial = int;
  using Result = bool;
  template <class A>
  static __device__ __forceinline__ A identity() {
    return 1;
  }
};
template <class R>
constexpr bool kOfTruth = std::is_same_v<R, Any<typename R::Element>> || std::is_same_v<R, All<typename R::Element>>;

// Whether R sums in float, where numbers may overflow on the way to a sum that fits, and whether it takes distances.
template <class R>
constexpr bool kMayOverflow =
    std::is_same_v<typename R::Accumulator, float>&& std::is_same_v<typename R::Partial, double>;
template <class R>
constexpr bool kOfDistances = std::is_same_v<typename R::Accumulator, Distances>;

// What a thread adds up: an element, times `unit` where sums may overflow; or, for a variance, the element's distance
// from `center`, which is another element of the same output. The kernels then express each mean as a distance from the
// output's first element, `origin`, because far from 0 it would be rounded too coarsely.
template <class R, class T>
__device__ __forceinline__ typename R::Accumulator value_in(T element, double center, float unit) {
  if constexpr (kOfDistances<R>) {
    const double distance = accumulated<double>(element) - center;
    return {distance, distance * distance};
  } else if constexpr (kMayOverflow<R>) {
    return accumulated<float>(element) * unit;
  } else if constexpr (kOfTruth<R>) {
    if constexpr (std::is_integral_v<T>)
      return element != T(0);
    else
      return to_float(element) != 0;
  } else {
    return accumulated<typename R::Accumulator>(element);
  }
}

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
  constexpr bool is_bool = std::is_same_v<T, bool>;  // of which any is the larger, and all the smaller
  if (args.op == ReduceOp::kMax || (is_bool && args.op == ReduceOp::kAny)) return f.template operator()<Maximum<T>>();
  if (args.op == ReduceOp::kMin || (is_bool && args.op == ReduceOp::kAll)) return f.template operator()<Minimum<T>>();
  if constexpr (!is_bool) {
    if (args.op == ReduceOp::kAny) return f.template operator()<Any<T>>();
    if (args.op == ReduceOp::kAll) return f.template operator()<All<T>>();
  }
  if (args.op == ReduceOp::kProd)
    f.template operator()<Product<T>>();
  else if (!is_spread(args.op))
    f.template operator()<Sum<T>>();
  else if constexpr (!std::is_integral_v<T>)
    f.template operator()<Variance<T>>();
}

// A team of threads folds the `splits` partial results of an output: a block where they are many, one thread where they
// are few and the outputs many, and otherwise a warp.
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
    value = warp_reduce(value, R{}, blockDim.x);
    if (blockDim.x > kWarp) value = block.across_warps(value, R::template identity<A>(), R{});
    if (threadIdx.x == 0) y[output] = finish<R>(value, result);
  }
}

// Launches `kernel` as planned, then folds the parts if there are several.
template <class R, class Kernel>
void launch_reduce(Kernel kernel, const ReduceArgs& args, const ReducePlan& plan, Queue& queue) {
  const auto x = static_cast<const typename R::Element*>(args.x);
  const auto y = static_cast<typename R::Result*>(args.y);
  const auto partial = static_cast<typename R::Partial*>(queue.scratch_bytes(reduce_partial_bytes(args, plan)));
  const int64_t tiles = std::min<int64_t>(plan.column_tiles * plan.row_tiles, INT32_MAX);
  const Dim3 block = plan.along ? Dim3{plan.steps, plan.rows} : Dim3{plan.columns, plan.steps, plan.rows};
  queue.launch(kernel, early({{tiles, plan.splits}, block}, queue), x, y, partial, args, plan, reduce_end(args));
  if (plan.splits == 1) return;
  constexpr int64_t kManyOutputs = 8192, kFewSplits = 16, kManySplits = 128;
  const int64_t outputs = args.outer * args.inner;
  const int64_t lanes = plan.splits > kManySplits                              ? 256
                        : outputs >= kManyOutputs && plan.splits <= kFewSplits ? 1
                                                                               : kWarp;
  const int64_t teams = lanes == kWarp ? 4 : 256 / lanes;
  queue.launch(reduce_cuda_combine_kernel<R>,
               early({std::min<int64_t>((outputs + teams - 1) / teams, INT32_MAX), {lanes, teams}}, queue), partial, y,
               outputs, plan.splits, reduce_end(args));
}

}  // namespace rooflab::kernels
