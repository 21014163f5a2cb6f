// The CUDA rungs of scale_tensors: see scale_tensors.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/scale_tensors/scale_tensors.h"

namespace rooflab::kernels {
namespace {

template <class T>
__device__ __forceinline__ T scaled(T x, accumulator_t<T> factor) {
  return round_to<T>(to_float(x) * factor);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    scale_tensors_cuda_v0_reference_kernel(FlatTensor tensor, const double* __restrict__ factor) {
  T* const x = static_cast<T*>(tensor.data);
  const int64_t threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < tensor.n; i += threads)
    x[i] = scaled(x[i], static_cast<accumulator_t<T>>(*factor));
}

constexpr int kScaledInFlight = 4;  // per thread
template <class T>
constexpr int64_t kScaledPiece = kThreads* kScaledInFlight* kVectorWidth<T>;  // elements per block

template <class T>
__global__ void __launch_bounds__(kThreads)
    scale_tensors_cuda_v1_many_kernel(const __grid_constant__ TensorList list,
                                      const __grid_constant__ ListPieces pieces, const double* __restrict__ number) {
  constexpr int kWidth = kVectorWidth<T>;
  const auto factor = static_cast<accumulator_t<T>>(*number);
  const int i = pieces.tensor_of(blockIdx.x);
  const int64_t piece = (blockIdx.x - pieces.first[i]) * kScaledPiece<T>, n = list.tensors[i].n - piece;
  T* const x = static_cast<T*>(list.tensors[i].data) + piece;
  if (n >= kScaledPiece<T> && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
    Vector<T, kWidth> vectors[kScaledInFlight];
#pragma unroll
    for (int u = 0; u < kScaledInFlight; ++u)
      vectors[u] = load_vector<kWidth>(x + (u * kThreads + threadIdx.x) * kWidth);
#pragma unroll
    for (int u = 0; u < kScaledInFlight; ++u) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) vectors[u][j] = scaled(vectors[u][j], factor);
      store_vector(x + (u * kThreads + threadIdx.x) * kWidth, vectors[u]);
    }
  } else {
    const int64_t end = n < kScaledPiece<T> ? n : kScaledPiece<T>;
#pragma unroll 4
    for (int64_t at = threadIdx.x; at < end; at += kThreads) x[at] = scaled(x[at], factor);
  }
}

}  // namespace

void scale_tensors_cuda_v0_reference(const ScaleTensorsArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "scale_tensors", [&]<class Element>() {
    for (int i = 0; i < args.list.count; ++i)
      queue.launch(scale_tensors_cuda_v0_reference_kernel<cuda_type_t<Element>>, a_thread_each(args.list.tensors[i].n),
                   args.list.tensors[i], args.factor);
  });
}

void scale_tensors_cuda_v1_many(const ScaleTensorsArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "scale_tensors", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    const ListPieces pieces(args.list, kScaledPiece<T>);
    queue.launch(scale_tensors_cuda_v1_many_kernel<T>, {pieces.total(), kThreads}, args.list, pieces, args.factor);
  });
}

}  // namespace rooflab::kernels
