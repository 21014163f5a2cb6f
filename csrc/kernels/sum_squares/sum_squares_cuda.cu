// The CUDA rungs of sum_squares: see sum_squares.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/sum_squares/sum_squares.h"

namespace rooflab::kernels {
namespace {

template <class T>
__device__ __forceinline__ double square(T value) {
  const double number = to_float(value);
  return number * number;
}

template <class T>
__global__ void sum_squares_cuda_v0_reference_kernel(const __grid_constant__ SumSquaresArgs args) {
  double sum = args.continues ? *args.y : 0;
  for (int i = 0; i < args.list.count; ++i)
    for (int64_t j = 0; j < args.list.tensors[i].n; ++j)
      sum += square(static_cast<const T*>(args.list.tensors[i].data)[j]);
  *args.y = sum;
}

template <class T>
constexpr int64_t kSquaredPiece = sum_squares_piece(sizeof(T));  // elements of a block
template <class T>
constexpr int kSquaredInFlight = kSquaredPiece<T> / (kThreads * kVectorWidth<T>);  // of a thread

template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_squares_cuda_v1_many_kernel(const __grid_constant__ TensorList list, const __grid_constant__ ListPieces pieces,
                                    double* __restrict__ partial) {
  constexpr int kWidth = kVectorWidth<T>;
  const int i = pieces.tensor_of(blockIdx.x);
  const int64_t piece = (blockIdx.x - pieces.first[i]) * kSquaredPiece<T>, n = list.tensors[i].n - piece;
  const T* x = static_cast<const T*>(list.tensors[i].data) + piece;
  double sum = 0;
  if (n >= kSquaredPiece<T> && reinterpret_cast<uintptr_t>(x) % 16 == 0) {
    Vector<T, kWidth> vectors[kSquaredInFlight<T>];
#pragma unroll
    for (int u = 0; u < kSquaredInFlight<T>; ++u)
      vectors[u] = load_vector<kWidth>(x + (u * kThreads + threadIdx.x) * kWidth);
#pragma unroll
    for (int u = 0; u < kSquaredInFlight<T>; ++u) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum += square(vectors[u][j]);
    }
  } else {
    const int64_t end = n < kSquaredPiece<T> ? n : kSquaredPiece<T>;
#pragma unroll 4
    for (int64_t at = threadIdx.x; at < end; at += kThreads) sum += square(x[at]);
  }
  __shared__ typename BlockReduction<double>::Scratch scratch;
  sum = BlockReduction<double>(scratch).reduce(sum, 0.0, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

constexpr int kSumThreads = 1024;
__global__ void __launch_bounds__(kSumThreads)
    sum_squares_cuda_v1_many_sum_kernel(const double* __restrict__ partial, int64_t count, double* y, bool continues) {
  overlap_launches();
  double sum = 0;
#pragma unroll 8
  for (int64_t i = threadIdx.x; i < count; i += kSumThreads) sum += partial[i];
  __shared__ typename BlockReduction<double>::Scratch scratch;
  sum = BlockReduction<double>(scratch).reduce(sum, 0.0, Add{});
  if (threadIdx.x == 0) *y = continues ? *y + sum : sum;
}

}  // namespace

void sum_squares_cuda_v0_reference(const SumSquaresArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "sum_squares", [&]<class Element>() {
    queue.launch(sum_squares_cuda_v0_reference_kernel<cuda_type_t<Element>>, {1, 1}, args);
  });
}

void sum_squares_cuda_v1_many(const SumSquaresArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "sum_squares", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    const ListPieces pieces(args.list, kSquaredPiece<T>);
    double* partial = queue.scratch<double>(pieces.total());
    if (pieces.total() > 0)
      queue.launch(sum_squares_cuda_v1_many_kernel<T>, {pieces.total(), kThreads}, args.list, pieces, partial);
    queue.launch(sum_squares_cuda_v1_many_sum_kernel, early({1, kSumThreads}, queue), partial, pieces.total(), args.y,
                 args.continues);
  });
}

}  // namespace rooflab::kernels
