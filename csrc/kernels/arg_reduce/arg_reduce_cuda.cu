// arg_reduce on the GPU: see arg_reduce.h for what it computes.
#include "core/dispatch.h"
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/order.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/row_words.cuh"
#include "kernels/common/strided.h"

namespace rooflab::kernels {
namespace {

template <class T>
struct Place {
  comparable_t<T> value;
  int64_t index;  // -1: none yet
};

// The better of two; the earlier of equals.
struct Better {
  bool largest;
  template <class P>
  __device__ __forceinline__ P operator()(const P& a, const P& b) const {
    if (b.index < 0) return a;
    if (a.index < 0 || is_chosen_over(b.value, a.value, largest)) return b;
    if (is_chosen_over(a.value, b.value, largest)) return a;
    return a.index < b.index ? a : b;
  }
};

template <class T>
__device__ __forceinline__ void write_place(const ArgReduceArgs& args, const T* row, int64_t output, int64_t index) {
  args.indices[output] = index;
  if (args.values) static_cast<T*>(args.values)[output] = row[index * args.reduced_stride];
}

template <class T>
__device__ __forceinline__ const T* row_of(const ArgReduceArgs& args, int64_t output) {
  int64_t inner;
  const int64_t outer = divide(output, args.inner, inner);
  return static_cast<const T*>(args.x) + outer * args.outer_stride + inner * args.inner_stride;
}

template <class T>
__global__ void arg_reduce_cuda_v0_reference_kernel(ArgReduceArgs args) {
  const int64_t outputs = args.outer * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t output = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; output < outputs; output += threads) {
    const T* row = row_of<T>(args, output);
    Place<T> best{static_cast<comparable_t<T>>(row[0]), 0};
    for (int64_t k = 1; k < args.reduced; ++k)
      best = Better{args.largest}(best, Place<T>{static_cast<comparable_t<T>>(row[k * args.reduced_stride]), k});
    write_place(args, row, output, best.index);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) arg_reduce_cuda_v1_block_kernel(ArgReduceArgs args) {
  __shared__ typename BlockReduction<Place<T>>::Scratch scratch;
  BlockReduction<Place<T>> block(scratch);
  const Better better{args.largest};
  for (int64_t output = blockIdx.x; output < args.outer; output += gridDim.x) {
    const T* row = row_of<T>(args, output);
    Place<T> best{{}, -1};
    for (int64_t k = threadIdx.x; k < args.reduced; k += kThreads)
      best = better(best, Place<T>{static_cast<comparable_t<T>>(row[k * args.reduced_stride]), k});
    best = block.reduce(best, Place<T>{{}, -1}, better);
    if (threadIdx.x == 0) write_place(args, row, output, best.index);
  }
}

// The best of the elements of a row that thread number `thread` of `threads` visits, in the order of their positions.
template <class T, bool kAlong>
__device__ __forceinline__ Place<T> best_of_thread(const ArgReduceArgs& args, const T* row, int64_t thread,
                                                   int64_t threads) {
  Place<T> best{{}, -1};
  // Without a branch, which the compiler would move the loads behind.
  const auto visit = [&](comparable_t<T> value, int64_t at) {
    const bool is_better =
        static_cast<int>(best.index < 0) | static_cast<int>(is_chosen_over(value, best.value, args.largest));
    best.value = is_better ? value : best.value;
    best.index = is_better ? at : best.index;
  };
  if constexpr (kAlong) {
    using Element = cuda_type_t<T>;
    const auto* from = reinterpret_cast<const Element*>(row);
    const RowWords<Element> words(from, args.reduced);
#pragma unroll 4
    for (int64_t word = thread; word < words.count; word += threads) {
      const auto vector = words.load(from, word, Element{});
      const int64_t begin = words.begin(word);
#pragma unroll
      for (int i = 0; i < words.kWidth; ++i)
        if (begin + i >= 0 && begin + i < args.reduced)
          visit(static_cast<comparable_t<T>>(reinterpret_cast<const T&>(vector[i])), begin + i);
    }
  } else {
    constexpr int kLoads = 8;  // in flight
    const int64_t stride = threads * args.reduced_stride;
    const T* next = row + thread * args.reduced_stride;
    for (int64_t k = thread; k < args.reduced; k += kLoads * threads, next += kLoads * stride) {
      const int count = static_cast<int>(min((args.reduced - k + threads - 1) / threads, int64_t{kLoads}));
      comparable_t<T> elements[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        if (i < count) elements[i] = static_cast<comparable_t<T>>(next[i * stride]);
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        if (i < count) visit(elements[i], k + i * threads);
    }
  }
  return best;
}

// Writes the results, or the best of every split into `places` (outputs, splits) where there are several.
template <class T, bool kAlong>
__global__ void __launch_bounds__(kThreads)
    arg_reduce_cuda_v2_shared_axis_kernel(ArgReduceArgs args, ArgReducePlan plan, Place<T>* places) {
  __shared__ Place<T> shared[kThreads];
  Place<T>* mine = shared + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const Better better{args.largest};
  for (int64_t tile = blockIdx.x; tile < plan.column_tiles * plan.row_tiles; tile += gridDim.x) {
    int64_t column;
    const int64_t outer = divide(tile, plan.column_tiles, column) * blockDim.z + threadIdx.z;
    column = column * blockDim.x + threadIdx.x;
    const int64_t output = outer * args.inner + column;
    const bool is_inside = column < args.inner && outer < args.outer;
    Place<T> best{{}, -1};
    if (is_inside)
      best = best_of_thread<T, kAlong>(args, row_of<T>(args, output), blockIdx.y * int64_t{blockDim.y} + threadIdx.y,
                                       plan.splits * blockDim.y);
    // Along a contiguous axis the threads of an output are neighbours, up to a warp of which need no shared memory.
    const int lanes = kAlong ? min(kWarp, static_cast<int>(blockDim.y)) : 1;
    if (static_cast<int>(blockDim.y) > lanes) {
      __syncthreads();  // everyone is done with the tile before
      *mine = best;
      for (int half = blockDim.y / 2; half >= lanes; half /= 2) {
        __syncthreads();
        if (threadIdx.y < half) *mine = better(*mine, mine[half * blockDim.x]);
      }
      best = *mine;
    }
    if (kAlong) best = warp_reduce(best, better, lanes);
    if (is_inside && threadIdx.y == 0) {
      if (plan.splits > 1)
        places[output * plan.splits + blockIdx.y] = best;
      else
        write_place(args, row_of<T>(args, output), output, best.index);
    }
  }
}

// A warp for each output chooses among the best of its splits.
template <class T>
__global__ void __launch_bounds__(kThreads)
    arg_reduce_cuda_v2_combine_kernel(ArgReduceArgs args, int64_t splits, const Place<T>* places) {
  wait_for_previous_kernel();
  const Better better{args.largest};
  const int64_t outputs = args.outer * args.inner, warps = gridDim.x * int64_t{blockDim.y};
  for (int64_t output = blockIdx.x * int64_t{blockDim.y} + threadIdx.y; output < outputs; output += warps) {
    Place<T> best{{}, -1};
    for (int64_t split = threadIdx.x; split < splits; split += kWarp)
      best = better(best, places[output * splits + split]);
    best = warp_reduce(best, better);
    if (threadIdx.x == 0) write_place(args, row_of<T>(args, output), output, best.index);
  }
}

template <class T>
void launch_shared_axis(const ArgReduceArgs& args, Queue& queue) {
  static_assert(sizeof(Place<T>) == kArgReducePlaceBytes);
  const ArgReducePlan plan = arg_reduce_plan(args);
  const int64_t outputs = args.outer * args.inner, tiles = plan.column_tiles * plan.row_tiles;
  auto* places =
      static_cast<Place<T>*>(queue.scratch_bytes(plan.splits > 1 ? outputs * plan.splits * kArgReducePlaceBytes : 0));
  queue.launch(
      plan.along ? arg_reduce_cuda_v2_shared_axis_kernel<T, true> : arg_reduce_cuda_v2_shared_axis_kernel<T, false>,
      {{std::min(tiles, kMostBlocks), plan.splits}, {plan.columns, plan.steps, plan.rows}}, args, plan, places);
  if (plan.splits > 1)
    queue.launch(arg_reduce_cuda_v2_combine_kernel<T>,
                 {.grid = std::min(blocks_of(outputs, kThreads / kWarp), kMostBlocks),
                  .block = {kWarp, kThreads / kWarp},
                  .early = can_launch_early(queue)},
                 args, plan.splits, places);
}

}  // namespace

void arg_reduce_cuda_v0_reference(const ArgReduceArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() {
    queue.launch(arg_reduce_cuda_v0_reference_kernel<T>, a_thread_each(args.outer * args.inner), args);
  });
}

void arg_reduce_cuda_v1_block(const ArgReduceArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "arg_reduce",
               [&]<class T>() { queue.launch(arg_reduce_cuda_v1_block_kernel<T>, a_block_each(args.outer), args); });
}

void arg_reduce_cuda_v2_shared_axis(const ArgReduceArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() { launch_shared_axis<T>(args, queue); });
}

}  // namespace rooflab::kernels
