// arg_reduce on the GPU: see arg_reduce.h for what it computes.
#include "core/dispatch.h"
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/order.h"
#include "kernels/common/reduce.cuh"

namespace rooflab::kernels {
namespace {

template <class T>
struct Place {
  comparable_t<T> value;
  int64_t index;  // -1: none yet
};

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
  return static_cast<const T*>(args.x) + output / args.inner * args.outer_stride +
         output % args.inner * args.inner_stride;
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

}  // namespace rooflab::kernels
