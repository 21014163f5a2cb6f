// scatter_add on the GPU: see scatter_add.h for what it computes.
#include "kernels/common/cuda_types.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/strided.h"
#include "kernels/scatter_add/dispatch_sums.h"

namespace rooflab::kernels {
namespace {

template <class S, class T>
__device__ __forceinline__ void atomic_add(void* y, int64_t at, T value) {
  if constexpr (std::is_same_v<T, int64_t>)
    atomicAdd(static_cast<unsigned long long*>(y) + at, static_cast<unsigned long long>(value));
  else if constexpr (std::is_same_v<T, S>)
    atomicAdd(static_cast<S*>(y) + at, value);
  else
    atomicAdd(static_cast<S*>(y) + at, S{to_float(value)});
}

// Adds the thread's elements to `sums`, which has the places of y.
template <class T, class S>
__device__ __forceinline__ void add_elements(const ScatterAddArgs& args, S* sums) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.at.count; i += threads) {
    int64_t rest = i, at = 0, from = 0, to = 0;
    for (int d = args.at.ndim - 1; d >= 0; --d) {
      int64_t digit = rest;
      if (d > 0) rest = divide(rest, args.at.sizes[d], digit);
      at += digit * args.at.strides[d];
      from += digit * args.src_strides[d];
      to += digit * args.y_strides[d];
    }
    const int64_t number = index_at(args.at, at), index = place_of(number, args.at.from_end);
    if (index >= 0 && index < args.at.limit)
      atomic_add<S>(sums, to + index * args.at.step, static_cast<const T*>(args.src)[from]);
    else
      report(args.at.report, out_of_range(args.at, number));
  }
}

template <class T, class S>
__global__ void scatter_add_cuda_v0_reference_kernel(const __grid_constant__ ScatterAddArgs args) {
  add_elements<T>(args, static_cast<S*>(args.y));
}

template <class T, class S>
__global__ void __launch_bounds__(kThreads)
    scatter_add_cuda_v1_shared_kernel(const __grid_constant__ ScatterAddArgs args) {
  __shared__ S sums[kScatterAddShared];
  for (int place = threadIdx.x; place < args.places; place += kThreads) sums[place] = 0;
  __syncthreads();
  add_elements<T>(args, sums);
  __syncthreads();
  for (int place = threadIdx.x; place < args.places; place += kThreads)
    if (sums[place] != 0) atomic_add<S>(args.y, place, sums[place]);
}

}  // namespace

void scatter_add_cuda_v1_shared(const ScatterAddArgs& args, Queue& queue) {
  constexpr int64_t kBlocks = 4;  // per multiprocessor: each adds its sums to y
  const int64_t blocks = std::min(blocks_of(args.at.count), kBlocks * queue.target().sm_count);
  dispatch_sums(args, [&]<class T, class S>() {
    queue.launch(scatter_add_cuda_v1_shared_kernel<cuda_type_t<T>, S>, {blocks, kThreads}, args);
  });
}

void scatter_add_cuda_v0_reference(const ScatterAddArgs& args, Queue& queue) {
  dispatch_sums(args, [&]<class T, class S>() {
    queue.launch(scatter_add_cuda_v0_reference_kernel<cuda_type_t<T>, S>, a_thread_each(args.at.count), args);
  });
}

}  // namespace rooflab::kernels
