// arg_reduce on the GPU: see arg_reduce.h for what it computes.
#include <limits>

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

// The best of the elements that a thread visits in the order of their positions. Values are turned so that the largest
// is wanted. There are no branches, which the compiler would move loads behind.
template <class T>
class Search {
 public:
  using Element = cuda_type_t<T>;

  // `first` is the position of the first element that the thread will visit; -1: there is none.
  __device__ __forceinline__ Search(bool largest, int64_t first) : largest_(largest), index_(first) {
    if constexpr (std::is_floating_point_v<C>)
      value_ = -static_cast<C>(INFINITY);
    else
      value_ = std::numeric_limits<C>::min();
  }

  // kCount elements, `step` apart from position `begin` on, of which is_there(i) says which exist.
  template <int kCount, class IsThere>
  __device__ __forceinline__ void visit(const Element* elements, int64_t begin, int64_t step, IsThere&& is_there) {
    int chosen = -1;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const C value = turned(compared(elements[i]));
      const bool is_better = static_cast<int>(!(value <= value_)) & static_cast<int>(!has_nan_) &
                             static_cast<int>(is_there(i));  // a NaN is
      value_ = is_better ? value : value_;
      chosen = is_better ? i : chosen;
      has_nan_ = value_ != value_;
    }
    if (chosen >= 0) index_ = begin + chosen * step;
  }

  __device__ __forceinline__ Place<T> best() const { return {turned(value_), index_}; }

 private:
  using C = comparable_t<T>;

  __device__ __forceinline__ static C compared(const Element& element) {
    if constexpr (std::is_same_v<C, T>)
      return element;
    else
      return to_float(element);
  }
  __device__ __forceinline__ C turned(C value) const {
    if constexpr (std::is_same_v<C, bool>)
      return value == largest_;
    else if constexpr (std::is_floating_point_v<C>)
      return largest_ ? value : -value;
    else
      return largest_ ? value : ~value;
  }

  bool largest_, has_nan_ = false;
  C value_;
  int64_t index_;
};

// Of the elements of a row, those that thread number `thread` of `threads` visits.
template <class T, bool kAlong>
__device__ __forceinline__ Place<T> best_of_thread(const ArgReduceArgs& args, const T* row, int64_t thread,
                                                   int64_t threads) {
  using Element = cuda_type_t<T>;
  const auto* from = reinterpret_cast<const Element*>(row);
  if constexpr (kAlong) {
    constexpr int kWidth = RowWords<Element>::kWidth, kLoads = 4;  // in flight
    const RowWords<Element> words(from, args.reduced);
    const int64_t last = words.count - 1;
    Search<T> search(args.largest, thread > last ? -1 : max(words.begin(thread), int64_t{0}));
    const auto visit_end = [&](int64_t word) {  // the first or the last word, which may reach beyond the row
      const auto loaded = words.load(from, word);
      Element elements[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) elements[i] = loaded[i];
      const int64_t begin = words.begin(word);
      search.template visit<kWidth>(elements, begin, 1,
                                    [&](int i) { return begin + i >= 0 && begin + i < args.reduced; });
    };
    if (thread == 0) visit_end(0);
    for (int64_t word = thread == 0 ? threads : thread; word < last; word += kLoads * threads) {
      Vector<Element, kWidth> vectors[kLoads];
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        if (word + u * threads < last)
          vectors[u] = load_vector<kWidth, CachePolicy::kStreaming>(from + words.begin(word + u * threads));
#pragma unroll
      for (int u = 0; u < kLoads; ++u)
        if (word + u * threads < last)
          search.template visit<kWidth>(vectors[u].values, words.begin(word + u * threads), 1,
                                        [](int) { return true; });
    }
    if (last > 0 && last % threads == thread) visit_end(last);
    return search.best();
  } else {
    constexpr int kLoads = 8;  // in flight
    const int64_t stride = threads * args.reduced_stride;
    const Element* next = from + thread * args.reduced_stride;
    Search<T> search(args.largest, thread < args.reduced ? thread : -1);
    for (int64_t k = thread; k < args.reduced; k += kLoads * threads, next += kLoads * stride) {
      const int64_t left = (args.reduced - k + threads - 1) / threads;
      Element elements[kLoads] = {};
#pragma unroll
      for (int i = 0; i < kLoads; ++i)
        if (i < left) elements[i] = next[i * stride];
      search.template visit<kLoads>(elements, k, threads, [&](int i) { return i < left; });
    }
    return search.best();
  }
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
