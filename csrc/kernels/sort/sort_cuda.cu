// sort on the GPU: see sort.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/order.h"
#include "kernels/common/reduce.cuh"
#include "kernels/sort/sort.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void sort_cuda_v0_reference_kernel(SortArgs args) {
  using C = comparable_t<T>;
  const int64_t count = args.outer * args.n * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < count; at += threads) {
    const int64_t i = at % args.inner, own = at / args.inner % args.n, outer = at / args.inner / args.n;
    const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
    const C value = static_cast<C>(x[own * args.n_stride]);
    int64_t rank = 0;
    for (int64_t k = 0; k < args.n && rank < args.keep; ++k)
      rank += k != own && sorts_before(static_cast<C>(x[k * args.n_stride]), k, value, own, args.descending);
    if (rank >= args.keep) continue;
    const int64_t place = (outer * args.keep + rank) * args.inner + i;
    if (args.indices) args.indices[place] = own;
    static_cast<T*>(args.values)[place] = x[own * args.n_stride];
  }
}

template <class C>
struct Candidate {
  C value;
  int64_t index;  // -1: none
};

// The earlier of two in the order.
struct Earlier {
  bool descending;
  template <class P>
  __device__ __forceinline__ P operator()(const P& a, const P& b) const {
    if (b.index < 0) return a;
    return a.index < 0 || sorts_before(b.value, b.index, a.value, a.index, descending) ? b : a;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) sort_cuda_v1_select_kernel(SortArgs args) {
  using P = Candidate<comparable_t<T>>;
  __shared__ typename BlockReduction<P>::Scratch scratch;
  BlockReduction<P> block(scratch);
  const Earlier earlier{args.descending};
  for (int64_t line = blockIdx.x; line < args.outer; line += gridDim.x) {
    const T* x = static_cast<const T*>(args.x) + line * args.outer_stride;
    P last{{}, -1};
    for (int64_t round = 0; round < args.keep; ++round) {
      P best{{}, -1};
      for (int64_t k = threadIdx.x; k < args.n; k += kThreads) {
        const P own{static_cast<comparable_t<T>>(x[k * args.n_stride]), k};
        const bool is_left = last.index < 0 || (k != last.index && sorts_before(last.value, last.index, own.value,
                                                                                own.index, args.descending));
        if (is_left) best = earlier(best, own);
      }
      last = block.reduce(best, P{{}, -1}, earlier);
      if (threadIdx.x == 0) {
        if (args.indices) args.indices[line * args.keep + round] = last.index;
        static_cast<T*>(args.values)[line * args.keep + round] = x[last.index * args.n_stride];
      }
    }
  }
}

}  // namespace

void sort_cuda_v0_reference(const SortArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "sort", [&]<class T>() {
    queue.launch(sort_cuda_v0_reference_kernel<T>, a_thread_each(args.outer * args.n * args.inner), args);
  });
}

void sort_cuda_v1_select(const SortArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "sort",
               [&]<class T>() { queue.launch(sort_cuda_v1_select_kernel<T>, a_block_each(args.outer), args); });
}

}  // namespace rooflab::kernels
