// The CUDA rungs of cross_entropy: see cross_entropy.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/long_sum.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/common/row_words.cuh"
#include "kernels/cross_entropy/cross_entropy.h"

namespace rooflab::kernels {
namespace {

constexpr int kMostThreads = 512;  // of a block that strides over a row
constexpr int kUnroll = 4;         // loads that a thread keeps in flight

// What the first thread of a block does with the row's sums. Out: T, or A where the losses are still to be summed.
template <class T, class Out, class A>
__device__ __forceinline__ void write_loss(const CrossEntropyArgs& args, Out* losses, int64_t row, const T* x,
                                           MaxSum<A> all) {
  const A rest = log(all.sum);
  store_lse(args, row, all.maximum, rest);
  const int64_t target = class_of(args.classes, row);
  A loss = 0;
  if (target >= 0 && target < args.v && target != args.classes.ignore_index) {
    loss = rest - (static_cast<A>(to_float(x[target])) - all.maximum);
  } else if (target != args.classes.ignore_index) {
    loss = static_cast<A>(NAN);
    report(args.classes.report, out_of_range(args.classes, target));
  }
  losses[row] = round_to<Out>(loss);
}

// A block works on blockDim.y rows, each with blockDim.x threads, which are more than a warp only where it is one row.
template <class T, class Out, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    cross_entropy_cuda_v1_online_kernel(const __grid_constant__ CrossEntropyArgs args, Out* losses) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  BlockReduction<MaxSum<A>> block(scratch);
  for (int64_t first = blockIdx.x * int64_t{blockDim.y}; first < args.n; first += gridDim.x * int64_t{blockDim.y}) {
    const int64_t row = first + threadIdx.y, width = row < args.n ? args.v : 0;
    const T* x = static_cast<const T*>(args.logits) + row * args.row_stride;
    LongMaxSum<A> own;
    for (int64_t i = threadIdx.x; i < width; i += int64_t{kUnroll} * blockDim.x) {
      A values[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int64_t at = i + int64_t{u} * blockDim.x;
        values[u] = at < width ? static_cast<A>(to_float(x[at])) : -static_cast<A>(INFINITY);
      }
      own.template add<T>(values);
    }
    const MaxSum<A> all = blockDim.x > kWarp ? block.reduce(own.value(), nothing<A>(), MergeMaxSum{})
                                             : warp_reduce(own.value(), MergeMaxSum{}, blockDim.x);
    if (threadIdx.x == 0 && row < args.n) write_loss(args, losses, row, x, all);
  }
}

template <class T, class Out, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kMostThreads)
    cross_entropy_cuda_v2_vectorised_kernel(const __grid_constant__ CrossEntropyArgs args, Out* losses) {
  constexpr int kWidth = kVectorWidth<T>;
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  BlockReduction<MaxSum<A>> block(scratch);
  for (int64_t row = blockIdx.x; row < args.n; row += gridDim.x) {
    const T* x = static_cast<const T*>(args.logits) + row * args.row_stride;
    const RowWords<T> words(x, args.v, static_cast<const T*>(args.logits), args.n, args.row_stride);
    LongMaxSum<A> own;
    for (int64_t first = threadIdx.x; first < words.count; first += int64_t{kUnroll} * blockDim.x) {
      Packed<T, kWidth> loaded[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u)
        if (first + int64_t{u} * blockDim.x < words.count) loaded[u] = words.load(x, first + int64_t{u} * blockDim.x);
      A values[kUnroll * kWidth];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const auto inside = words.within(loaded[u], first + int64_t{u} * blockDim.x, from_float<T>(-INFINITY));
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[u * kWidth + i] = static_cast<A>(to_float(inside[i]));
      }
      own.template add<T>(values);
    }
    const MaxSum<A> all = block.reduce(own.value(), nothing<A>(), MergeMaxSum{});
    if (threadIdx.x == 0) write_loss(args, losses, row, x, all);
  }
}

template <class A>
struct LossSum {
  A sum;
  int64_t count;
};
template <class A>
__device__ __forceinline__ LossSum<A> operator+(LossSum<A> a, LossSum<A> b) {
  return {a.sum + b.sum, a.count + b.count};
}

// By one block; the order of the additions depends on N alone.
template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(1024)
    cross_entropy_cuda_sum_kernel(const __grid_constant__ CrossEntropyArgs args, const A* losses) {
  __shared__ typename BlockReduction<LossSum<A>>::Scratch scratch;
  BlockReduction<LossSum<A>> block(scratch);
  const LossSum<A> own = sum_of_thread(args.n, [&](int64_t row) {
    return LossSum<A>{losses[row], class_of(args.classes, row) != args.classes.ignore_index};
  });
  LossSum<A> all = block.reduce(own, {0, 0}, Add{});
  if (threadIdx.x > 0) return;
  if (args.count) {
    *static_cast<A*>(args.count) = static_cast<A>(all.count);
    all.sum /= static_cast<A>(all.count);
  }
  if (args.wide_loss)
    *static_cast<A*>(args.loss) = all.sum;
  else
    *static_cast<T*>(args.loss) = round_to<T>(all.sum);
}

// Threads per block for a row that is read in `steps` steps.
int64_t threads_for(int64_t steps) {
  return std::clamp<int64_t>((steps + kUnroll * kWarp - 1) / (kUnroll * kWarp) * kWarp, kWarp, kMostThreads);
}

// Calls rows.operator()<T, Out>(losses), which launches the kernel that writes one loss per row; then sums the losses.
template <class Rows>
void run_rows(const CrossEntropyArgs& args, Queue& queue, Rows&& rows) {
  dispatch_floating(args.dtype, "cross_entropy", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    using A = accumulator_t<T>;
    if (!args.reduces)
      return args.wide_loss ? rows.template operator()<T, A>(static_cast<A*>(args.loss))
                            : rows.template operator()<T, T>(static_cast<T*>(args.loss));
    A* const losses = queue.scratch<A>(args.n);
    if (args.n > 0) rows.template operator()<T, A>(losses);
    queue.launch(cross_entropy_cuda_sum_kernel<T>, {1, 1024}, args, losses);
  });
}

}  // namespace

void cross_entropy_cuda_v1_online(const CrossEntropyArgs& args, Queue& queue) {
  run_rows(args, queue, [&]<class T, class Out>(Out* losses) {
    const RowTeam team = row_team(args.v);
    queue.launch(cross_entropy_cuda_v1_online_kernel<T, Out>, {grid_for(args.n, team.rows), {team.lanes, team.rows}},
                 args, losses);
  });
}

void cross_entropy_cuda_v2_vectorised(const CrossEntropyArgs& args, Queue& queue) {
  run_rows(args, queue, [&]<class T, class Out>(Out* losses) {
    queue.launch(cross_entropy_cuda_v2_vectorised_kernel<T, Out>,
                 {grid_for(args.n), threads_for(args.v / kVectorWidth<T> + 1)}, args, losses);
  });
}

}  // namespace rooflab::kernels
