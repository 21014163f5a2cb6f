// The CUDA rung of softmax whose blocks share a row: see softmax.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_part.cuh"
#include "kernels/common/row_split.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

// What becomes of an element of a row whose maximum and sum are known.
template <class A>
struct RowEnd {
  bool logarithm;
  A shift, last;

  __device__ __forceinline__ RowEnd(MaxSum<A> row, bool logarithm)
      : logarithm(logarithm), shift(finite_shift(row.maximum)), last(logarithm ? log(row.sum) : A{1} / row.sum) {}

  template <class T>
  __device__ __forceinline__ T result(A x) const {
    return round_to<T>(logarithm ? x - shift - last : exp_as<T>(x - shift) * last);
  }
};

// partial[row, split] = maximum and sum of the split.
template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    softmax_cuda_v3_parts_kernel(const T* x, MaxSum<A>* partial, int64_t d, int64_t x_row_stride) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  constexpr int kLoads = kWidth > 1 ? 1 : 4;
  const T* in = x + blockIdx.x * x_row_stride;
  const RowPart part(d, kWidth, blockIdx.y, gridDim.y);
  LongMaxSum<A> own;
  for (int64_t i = part.begin + threadIdx.x * kWidth; i < part.end; i += kThreads * kWidth * kLoads) {
    A values[kLoads * kWidth];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t at = i + load * kThreads * kWidth;
      if constexpr (kWidth == 1) {
        values[load] = at < part.end ? static_cast<A>(to_float(in[at])) : -static_cast<A>(INFINITY);
      } else {
        const auto vector = to_float(load_vector<kWidth>(in + at));
#pragma unroll
        for (int e = 0; e < kWidth; ++e) values[e] = vector[e];
      }
    }
    own.template add<T>(values);
  }
  const MaxSum<A> all = BlockReduction<MaxSum<A>>(scratch).reduce(own.value(), nothing<A>(), MergeMaxSum{});
  if (threadIdx.x == 0) partial[blockIdx.x * int64_t{gridDim.y} + blockIdx.y] = all;
}

template <class T, int kWidth, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kThreads)
    softmax_cuda_v3_split_rows_kernel(const T* x, T* y, const MaxSum<A>* partial, int64_t d, int64_t x_row_stride,
                                      bool logarithm) {
  __shared__ typename BlockReduction<MaxSum<A>>::Scratch scratch;
  wait_for_previous_kernel();
  MaxSum<A> all = nothing<A>();
  for (int split = threadIdx.x; split < gridDim.y; split += kThreads)
    all = MergeMaxSum{}(all, partial[blockIdx.x * int64_t{gridDim.y} + split]);
  all = BlockReduction<MaxSum<A>>(scratch).reduce(all, nothing<A>(), MergeMaxSum{});
  const RowEnd<A> end(all, logarithm);

  const T* in = x + blockIdx.x * x_row_stride;
  T* out = y + blockIdx.x * d;
  const RowPart part(d, kWidth, blockIdx.y, gridDim.y);
  for (int64_t i = part.begin + threadIdx.x * kWidth; i < part.end; i += kThreads * kWidth) {
    if constexpr (kWidth == 1) {
      out[i] = end.template result<T>(static_cast<A>(to_float(in[i])));
    } else {
      const auto values = to_float(load_vector<kWidth, CachePolicy::kStreaming>(in + i));
      Vector<T, kWidth> results;
#pragma unroll
      for (int e = 0; e < kWidth; ++e) results[e] = end.template result<T>(values[e]);
      store_vector<CachePolicy::kStreaming>(out + i, results);
    }
  }
}

template <class T, int kWidth>
void launch_split_rows(const SoftmaxArgs& args, Queue& queue) {
  using A = accumulator_t<T>;
  const int64_t splits = row_splits(args.n, args.d);
  const auto x = static_cast<const T*>(args.x);
  auto* partial = queue.scratch<MaxSum<A>>(args.n * splits);
  LaunchShape shape{{args.n, splits}, kThreads};
  queue.launch(softmax_cuda_v3_parts_kernel<T, kWidth>, shape, x, partial, args.d, args.x_row_stride);
  shape.early = can_launch_early(queue);
  queue.launch(softmax_cuda_v3_split_rows_kernel<T, kWidth>, shape, x, static_cast<T*>(args.y), partial, args.d,
               args.x_row_stride, args.logarithm);
}

}  // namespace

void softmax_cuda_v3_split_rows(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    if constexpr (!std::is_same_v<T, double>)
      if (rows_have_vectors(args.dtype, args.d, args.x, args.x_row_stride, args.y))
        return launch_split_rows<T, kVectorWidth<T>>(args, queue);
    launch_split_rows<T, 1>(args, queue);
  });
}

}  // namespace rooflab::kernels
