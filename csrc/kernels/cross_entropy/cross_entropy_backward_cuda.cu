// The CUDA rungs of cross_entropy_backward: see cross_entropy_backward.h for what they compute.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/row_words.cuh"
#include "kernels/cross_entropy/cross_entropy_backward.h"

namespace rooflab::kernels {
namespace {

constexpr int kLoadsInFlight = 4;  // per thread

// What the gradients of one row are computed from.
template <class T, class A = accumulator_t<T>>
struct RowGradient {
  int64_t target;
  A lse, rest, scale;  // scale: the gradient of the row's loss
  bool ignored;

  __device__ __forceinline__ RowGradient(const CrossEntropyBackwardArgs& args, int64_t row)
      : target(class_of(args.classes, row)),
        lse(static_cast<const A*>(args.lse)[row]),
        rest(args.lse_rest ? static_cast<const A*>(args.lse_rest)[row] : A{0}),
        scale(args.wide_loss ? static_cast<const A*>(args.dloss)[row * args.dloss_stride]
                             : static_cast<A>(to_float(static_cast<const T*>(args.dloss)[row * args.dloss_stride]))),
        ignored(target == args.classes.ignore_index) {
    if (args.count) scale /= *static_cast<const A*>(args.count);
    if (ignored || (target >= 0 && target < args.v)) return;
    scale = static_cast<A>(NAN);
    report(args.classes.report, out_of_range(args.classes, target));
  }

  __device__ __forceinline__ T operator()(T x, int64_t at) const {
    const A p = exp_as<T>(static_cast<A>(to_float(x)) - lse - rest);
    return round_to<T>(ignored ? A{0} : (p - (at == target ? A{1} : A{0})) * scale);
  }
};

// Each row is cut into `pieces` pieces of `span` words (or elements), which the blocks take in turn.
template <class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_cuda_v1_recompute_kernel(const __grid_constant__ CrossEntropyBackwardArgs args,
                                                    int64_t pieces) {
  constexpr int kSpan = kThreads * kLoadsInFlight;
  for (int64_t piece = blockIdx.x; piece < args.n * pieces; piece += gridDim.x) {
    const int64_t row = piece / pieces, begin = piece % pieces * kSpan + threadIdx.x;
    const T* x = static_cast<const T*>(args.logits) + row * args.row_stride;
    T* dx = static_cast<T*>(args.dlogits) + row * args.v;
    const RowGradient<T> gradient(args, row);
#pragma unroll
    for (int u = 0; u < kLoadsInFlight; ++u) {
      const int64_t at = begin + u * kThreads;
      if (at < args.v) dx[at] = gradient(x[at], at);
    }
  }
}

// A thread takes elements of many rows, side by side in memory.
template <class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_cuda_v1a_flat_kernel(const __grid_constant__ CrossEntropyBackwardArgs args) {
  const auto v = static_cast<uint32_t>(args.v);
  const int64_t count = args.n * v, step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += step) {
    const int64_t row = i < UINT32_MAX ? static_cast<uint32_t>(i) / v : i / v, at = i - row * v;
    const T* x = static_cast<const T*>(args.logits) + row * args.row_stride;
    static_cast<T*>(args.dlogits)[i] = RowGradient<T>(args, row)(x[at], at);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward_cuda_v2_vectorised_kernel(const __grid_constant__ CrossEntropyBackwardArgs args,
                                                     int64_t pieces) {
  constexpr int kSpan = kThreads * kLoadsInFlight, kWidth = kVectorWidth<T>;
  for (int64_t piece = blockIdx.x; piece < args.n * pieces; piece += gridDim.x) {
    const int64_t row = piece / pieces, begin = piece % pieces * kSpan + threadIdx.x;
    const T* x = static_cast<const T*>(args.logits) + row * args.row_stride;
    T* dx = static_cast<T*>(args.dlogits) + row * args.v;
    const RowGradient<T> gradient(args, row);
    const RowWords<T> words(x, args.v, static_cast<const T*>(args.logits), args.n, args.row_stride);
    Packed<T, kWidth> loaded[kLoadsInFlight];
#pragma unroll
    for (int u = 0; u < kLoadsInFlight; ++u)
      if (begin + u * kThreads < words.count) loaded[u] = words.load(x, begin + u * kThreads);
#pragma unroll
    for (int u = 0; u < kLoadsInFlight; ++u) {
      const int64_t word = begin + u * kThreads;
      if (word >= words.count) break;
      Vector<T, kWidth> values;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[i] = gradient(loaded[u][i], words.begin(word) + i);
      words.store(dx, word, values);
    }
  }
}

// The number of pieces of a row of `steps` words or elements.
int64_t pieces_of(int64_t steps) { return (steps + kThreads * kLoadsInFlight - 1) / (kThreads * kLoadsInFlight); }

}  // namespace

void cross_entropy_backward_cuda_v1_recompute(const CrossEntropyBackwardArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "cross_entropy_backward", [&]<class Element>() {
    const int64_t pieces = pieces_of(args.v);
    queue.launch(cross_entropy_backward_cuda_v1_recompute_kernel<cuda_type_t<Element>>,
                 {std::min<int64_t>(args.n * pieces, INT32_MAX), kThreads}, args, pieces);
  });
}

void cross_entropy_backward_cuda_v1a_flat(const CrossEntropyBackwardArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "cross_entropy_backward", [&]<class Element>() {
    queue.launch(cross_entropy_backward_cuda_v1a_flat_kernel<cuda_type_t<Element>>,
                 {std::min<int64_t>((args.n * args.v + kThreads - 1) / kThreads, INT32_MAX), kThreads}, args);
  });
}

void cross_entropy_backward_cuda_v2_vectorised(const CrossEntropyBackwardArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "cross_entropy_backward", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    const int64_t pieces = pieces_of(args.v / kVectorWidth<T> + 2);  // + 2: the first and the last word may be partial
    queue.launch(cross_entropy_backward_cuda_v2_vectorised_kernel<T>,
                 {std::min<int64_t>(args.n * pieces, INT32_MAX), kThreads}, args, pieces);
  });
}

}  // namespace rooflab::kernels
