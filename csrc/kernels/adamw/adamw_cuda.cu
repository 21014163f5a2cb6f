// The CUDA rungs of adamw: see adamw.h for what they compute.
#include "core/dispatch.h"
#include "kernels/adamw/adamw.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"

namespace rooflab::kernels {
namespace {

template <class T>
__device__ __forceinline__ void update(const AdamwStep<accumulator_t<T>>& step, T& p, T g, T& m, T& v) {
  using A = accumulator_t<T>;
  A wide_p = to_float(p), wide_m = to_float(m), wide_v = to_float(v);
  step(wide_p, static_cast<A>(to_float(g)), wide_m, wide_v, [](A x) { return sqrt(x); });
  p = round_to<T>(wide_p);
  m = round_to<T>(wide_m);
  v = round_to<T>(wide_v);
}

// Computes the step's numbers for all threads of a block. One thread does it, because powers of beta are taken in
// double.
template <class A>
__device__ __forceinline__ AdamwStep<A> step_now(const AdamwNumbers& numbers) {
  if (!numbers.step_at) return AdamwStep<A>(numbers);
  __shared__ AdamwNumbers now;
  if (threadIdx.x == 0) now = adamw_numbers_now(numbers);
  __syncthreads();
  return AdamwStep<A>(now);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    adamw_cuda_v1_fused_kernel(AdamwTensor x, const __grid_constant__ AdamwNumbers numbers) {
  const auto step = step_now<accumulator_t<T>>(numbers);
  T *p = static_cast<T*>(x.p), *m = static_cast<T*>(x.m), *v = static_cast<T*>(x.v);
  const T* g = static_cast<const T*>(x.g);
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < x.n; i += threads)
    update(step, p[i], g[i], m[i], v[i]);
}

constexpr int kVectorsInFlight = 2;  // of each array, per thread
template <class T>
constexpr int64_t kSpan = kThreads* kVectorsInFlight* kVectorWidth<T>;  // elements per block

// The first block of each tensor, then the total number of blocks.
struct AdamwBlocks {
  int64_t first[kAdamwTensors + 1];
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    adamw_cuda_v2_many_kernel(const __grid_constant__ AdamwArgs args, const __grid_constant__ AdamwBlocks blocks) {
  constexpr int kWidth = kVectorWidth<T>;
  const auto step = step_now<accumulator_t<T>>(args.numbers);
  int low = 0, high = args.count;  // the tensor's index is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (blocks.first[middle] <= blockIdx.x ? low : high) = middle;
  }
  const AdamwTensor& x = args.tensors[low];
  T *p = static_cast<T*>(x.p), *m = static_cast<T*>(x.m), *v = static_cast<T*>(x.v);
  const T* g = static_cast<const T*>(x.g);
  const int64_t begin = (blockIdx.x - blocks.first[low]) * kSpan<T> + threadIdx.x * kWidth;
  Vector<T, kWidth> ps[kVectorsInFlight], gs[kVectorsInFlight], ms[kVectorsInFlight], vs[kVectorsInFlight];
#pragma unroll
  for (int u = 0; u < kVectorsInFlight; ++u) {
    const int64_t at = begin + u * kThreads * kWidth;
    if (at + kWidth > x.n) continue;
    ps[u] = load_vector<kWidth>(p + at);
    gs[u] = load_vector<kWidth, CachePolicy::kStreaming>(g + at);
    ms[u] = load_vector<kWidth, CachePolicy::kStreaming>(m + at);
    vs[u] = load_vector<kWidth, CachePolicy::kStreaming>(v + at);
  }
#pragma unroll
  for (int u = 0; u < kVectorsInFlight; ++u) {
    const int64_t at = begin + u * kThreads * kWidth;
    if (at + kWidth <= x.n) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) update(step, ps[u][i], gs[u][i], ms[u][i], vs[u][i]);
      store_vector(p + at, ps[u]);
      store_vector<CachePolicy::kStreaming>(m + at, ms[u]);
      store_vector<CachePolicy::kStreaming>(v + at, vs[u]);
    } else {  // the end of the tensor
      for (int64_t i = at; i < x.n; ++i) update(step, p[i], g[i], m[i], v[i]);
    }
  }
}

}  // namespace

void adamw_cuda_v1_fused(const AdamwArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "adamw", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    for (int i = 0; i < args.count; ++i)
      queue.launch(adamw_cuda_v1_fused_kernel<T>, a_thread_each(args.tensors[i].n), args.tensors[i], args.numbers);
  });
}

void adamw_cuda_v2_many(const AdamwArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "adamw", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    AdamwBlocks blocks{};
    for (int i = 0; i < args.count; ++i)
      blocks.first[i + 1] = blocks.first[i] + (args.tensors[i].n + kSpan<T> - 1) / kSpan<T>;
    queue.launch(adamw_cuda_v2_many_kernel<T>, {blocks.first[args.count], kThreads}, args, blocks);
  });
}

}  // namespace rooflab::kernels
