// cumsum on the GPU: see cumsum.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {
namespace {

template <class T>
using cumsum_result_t = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <class A, class T>
__device__ __forceinline__ A widened(T value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>)
    return static_cast<A>(value);
  else
    return static_cast<A>(to_float(value));
}

template <class Y, class A>
__device__ __forceinline__ Y narrowed(A value) {
  if constexpr (std::is_integral_v<Y>)
    return value;
  else
    return round_to<Y>(value);
}

template <class T>
__global__ void cumsum_cuda_v0_reference_kernel(CumsumArgs args) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const int64_t lines = args.outer * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t line = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; line < lines; line += threads) {
    const int64_t outer = line / args.inner, i = line % args.inner;
    const T* x = static_cast<const T*>(args.x) + outer * args.x_outer_stride + i * args.x_inner_stride;
    Y* y = static_cast<Y*>(args.y) + outer * args.y_outer_stride + i * args.y_inner_stride;
    A total = 0;
    for (int64_t k = 0; k < args.n; ++k) y[k * args.y_stride] = narrowed<Y>(total += widened<A>(x[k * args.x_stride]));
  }
}

// The sum over this lane and those before it.
template <class A>
__device__ __forceinline__ A warp_scan(A value) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const A before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += before;
  }
  return value;
}

template <class T>
__global__ void __launch_bounds__(kThreads) cumsum_cuda_v1_block_scan_kernel(CumsumArgs args) {
  using Y = cumsum_result_t<T>;
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, accumulator_t<T>>;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ A of_warp[kWarps];
  const int warp = threadIdx.x / kWarp;
  for (int64_t line = blockIdx.x; line < args.outer; line += gridDim.x) {
    const T* x = static_cast<const T*>(args.x) + line * args.x_outer_stride;
    Y* y = static_cast<Y*>(args.y) + line * args.y_outer_stride;
    std::conditional_t<std::is_integral_v<A>, A, double> carried = 0;  // over the blocks, of which there may be many
    for (int64_t begin = 0; begin < args.n; begin += kThreads) {
      const int64_t k = begin + threadIdx.x;
      A sum = warp_scan(k < args.n ? widened<A>(x[k * args.x_stride]) : A{0});
      if (threadIdx.x % kWarp == kWarp - 1) of_warp[warp] = sum;
      __syncthreads();
      A of_block = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        if (w < warp) sum += of_warp[w];
        of_block += of_warp[w];
      }
      if (k < args.n) y[k * args.y_stride] = narrowed<Y>(static_cast<A>(carried) + sum);
      carried += of_block;
      __syncthreads();
    }
  }
}

}  // namespace

void cumsum_cuda_v0_reference(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    queue.launch(cumsum_cuda_v0_reference_kernel<cuda_type_t<T>>, a_thread_each(args.outer * args.inner), args);
  });
}

void cumsum_cuda_v1_block_scan(const CumsumArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    queue.launch(cumsum_cuda_v1_block_scan_kernel<cuda_type_t<T>>, a_block_each(args.outer), args);
  });
}

}  // namespace rooflab::kernels
