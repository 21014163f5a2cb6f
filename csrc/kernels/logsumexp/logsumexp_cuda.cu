// logsumexp on the GPU: see logsumexp.h for what it computes.
#include <cfloat>

#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/strided.h"
#include "kernels/logsumexp/logsumexp.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void logsumexp_cuda_v0_reference_kernel(const T* x, T* y, const __grid_constant__ LogsumexpArgs args) {
  const int64_t outputs = args.outer * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < outputs; at += threads) {
    int64_t column;
    const int64_t row = divide(at, args.inner, column);
    const T* from = x + row * args.outer_stride + column * args.inner_stride;
    double maximum = -INFINITY, sum = 0;
    for (int64_t k = 0; k < args.reduced; ++k)
      maximum = fmax(maximum, static_cast<double>(to_float(from[k * args.reduced_stride])));
    const double shift = isinf(maximum) ? 0 : maximum;
    for (int64_t k = 0; k < args.reduced; ++k) sum += exp(to_float(from[k * args.reduced_stride]) - shift);
    y[at] = round_to<T>(shift + log(sum));
  }
}

// Elements of +inf are left out of the maximum and the sum. This is what stands for one of them: an infinite sum beside
// the largest finite maximum, so that it stays infinite, or NaN, when others join.
template <class A>
__device__ __forceinline__ MaxSum<A> with_infinity(MaxSum<A> own) {
  return {std::is_same_v<A, double> ? static_cast<A>(DBL_MAX) : static_cast<A>(FLT_MAX),
          own.sum * 0 + static_cast<A>(INFINITY)};
}

template <class T, class A>
__device__ __forceinline__ T result_of(MaxSum<A> all) {
  return round_to<T>(finite_shift(all.maximum) + log(all.sum));
}

// Threads along x take neighbouring columns, those along y share the reduced axis, and those along z take other rows.
// partial[split, outer, inner] is null where there is one split.
template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    logsumexp_cuda_v1_online_kernel(const T* x, T* y, MaxSum<A>* partial, const __grid_constant__ LogsumexpArgs args,
                                    const __grid_constant__ ReducePlan plan) {
  constexpr int kLoads = 4;  // in flight
  __shared__ MaxSum<A> shared[kThreads];
  MaxSum<A>* mine = shared + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int64_t begin = args.reduced * blockIdx.y / plan.splits, end = args.reduced * (blockIdx.y + 1) / plan.splits;
  overlap_launches();
  for (int64_t tile = blockIdx.x; tile < plan.column_tiles * plan.row_tiles; tile += gridDim.x) {
    int64_t column;
    const int64_t row = divide(tile, plan.column_tiles, column) * blockDim.z + threadIdx.z;
    column = column * blockDim.x + threadIdx.x;
    const bool inside = column < args.inner && row < args.outer;
    const T* from = x + row * args.outer_stride + column * args.inner_stride;
    LongMaxSum<A> own;
    bool has_infinity = false;
    for (int64_t k = begin + threadIdx.y; inside && k < end; k += kLoads * blockDim.y) {
      A values[kLoads];
#pragma unroll
      for (int load = 0; load < kLoads; ++load) {
        const int64_t at = k + load * blockDim.y;
        const A value = at < end ? static_cast<A>(to_float(from[at * args.reduced_stride])) : -static_cast<A>(INFINITY);
        const bool is_infinity = value == static_cast<A>(INFINITY);
        values[load] = is_infinity ? -value : value;
        has_infinity |= is_infinity;
      }
      own.template add<T>(values);
    }
    *mine = has_infinity ? with_infinity(own.value()) : own.value();
    for (int half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) *mine = MergeMaxSum{}(*mine, mine[half * blockDim.x]);
    }
    if (inside && threadIdx.y == 0) {
      const int64_t at = row * args.inner + column;
      if (partial)
        partial[blockIdx.y * args.outer * args.inner + at] = *mine;
      else
        y[at] = result_of<T>(*mine);
    }
    __syncthreads();
  }
}

// A warp for each output folds its splits.
template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    logsumexp_cuda_v1_combine_kernel(const MaxSum<A>* partial, T* y, int64_t outputs, int64_t splits) {
  wait_for_previous_kernel();
  const int64_t warps = gridDim.x * int64_t{kThreads / kWarp};
  const int lane = threadIdx.x % kWarp;
  for (int64_t at = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; at < outputs; at += warps) {
    MaxSum<A> all = nothing<A>();
    for (int64_t split = lane; split < splits; split += kWarp) all = MergeMaxSum{}(all, partial[split * outputs + at]);
    all = warp_reduce(all, MergeMaxSum{});
    if (lane == 0) y[at] = result_of<T>(all);
  }
}

}  // namespace

void logsumexp_cuda_v0_reference(const LogsumexpArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "logsumexp", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(logsumexp_cuda_v0_reference_kernel<T>, a_thread_each(args.outer * args.inner),
                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args);
  });
}

void logsumexp_cuda_v1_online(const LogsumexpArgs& args, Queue& queue) {
  const ReducePlan plan = reduce_v1_plan(args);
  const int64_t outputs = args.outer * args.inner;
  const int64_t tiles = std::min<int64_t>(plan.column_tiles * plan.row_tiles, INT32_MAX);
  dispatch_floating(args.dtype, "logsumexp", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    using A = accumulator_t<T>;
    auto* y = static_cast<T*>(args.y);
    MaxSum<A>* partial =
        plan.splits > 1 ? static_cast<MaxSum<A>*>(queue.scratch_bytes(logsumexp_partial_bytes(args))) : nullptr;
    queue.launch(logsumexp_cuda_v1_online_kernel<T>,
                 early({{tiles, plan.splits}, {plan.columns, plan.steps, plan.rows}}, queue),
                 static_cast<const T*>(args.x), y, partial, args, plan);
    if (partial)
      queue.launch(logsumexp_cuda_v1_combine_kernel<T>,
                   early(a_block_each(blocks_of(outputs, kThreads / kWarp)), queue), partial, y, outputs, plan.splits);
  });
}

}  // namespace rooflab::kernels
