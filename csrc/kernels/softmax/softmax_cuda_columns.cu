// The CUDA rungs of softmax for rows that are columns: see softmax.h.
#include "core/dispatch.h"
#include "kernels/common/column_tile.cuh"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/common/row_tile.cuh"
#include "kernels/common/vector_load.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

constexpr int kShortThreads = 128;

template <class T, class A = accumulator_t<T>>
__global__ void __launch_bounds__(kColumnThreads)
    softmax_cuda_v4_columns_kernel(const T* x, T* y, int64_t d, int64_t inner, int64_t outer_stride, int64_t step,
                                   bool logarithm) {
  constexpr int kLoads = 4;  // in flight
  __shared__ MaxSum<A> values[kColumnThreads];
  const Column column(inner);
  const T* in = x + column.outer * outer_stride + column.inner;
  LongMaxSum<A> own;
  for (int64_t k = threadIdx.y; column.valid && k < d; k += kLoads * blockDim.y) {
    A loaded[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int64_t at = k + load * blockDim.y;
      loaded[load] = at < d ? static_cast<A>(to_float(in[at * step])) : -static_cast<A>(INFINITY);
    }
    own.template add<T>(loaded);
  }
  const MaxSum<A> all = across_column(values, own.value(), MergeMaxSum{});
  if (!column.valid) return;
  T* out = y + column.outer * d * inner + column.inner;
  const A last = logarithm ? log(all.sum) : A{1} / all.sum;
#pragma unroll 4
  for (int64_t k = threadIdx.y; k < d; k += blockDim.y) {
    const A distance = static_cast<A>(to_float(in[k * step])) - all.maximum;
    out[k * inner] = round_to<T>(logarithm ? distance - last : exp_as<T>(distance) * last);
  }
}

// A thread holds 16 bytes of each of the `d` rows that its columns cross. Only the last of all may have fewer elements.
template <class T, int kMost>
__global__ void __launch_bounds__(kShortThreads)
    softmax_cuda_v4a_short_columns_kernel(const T* x, T* y, int64_t count, int d, int64_t inner, int64_t outer_stride,
                                          int64_t step, bool logarithm) {
  constexpr int kWidth = kVectorWidth<T>;
  overlap_launches();
  const int64_t first = (blockIdx.x * int64_t{kShortThreads} + threadIdx.x) * kWidth;
  if (first >= count) return;
  const int valid = static_cast<int>(min(count - first, int64_t{kWidth}));
  const int64_t outer = first / inner, column = first - outer * inner;
  const T* in = x + outer * outer_stride + column;
  T* out = y + outer * d * inner + column;
  Packed<T, kWidth> loaded[kMost];
#pragma unroll
  for (int k = 0; k < kMost; ++k)
    if (k < d) loaded[k] = load_first<kWidth>(in + k * step, valid);

  Vector<float, kWidth> values[kMost], maximum, sum, last;
  fill_vector(maximum, -INFINITY);
  fill_vector(sum, 0.0f);
#pragma unroll
  for (int k = 0; k < kMost; ++k)
    if (k < d) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        values[k][i] = to_float(loaded[k][i]);
        maximum[i] = fmaxf(maximum[i], values[k][i]);
      }
    }
#pragma unroll
  for (int k = 0; k < kMost; ++k)
    if (k < d)
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        values[k][i] -= finite_shift(maximum[i]);
        const float exponential = exp_as<T>(values[k][i]);
        sum[i] += exponential;
        if (!logarithm) values[k][i] = exponential;
      }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) last[i] = logarithm ? logf(sum[i]) : 1.0f / sum[i];
#pragma unroll
  for (int k = 0; k < kMost; ++k)
    if (k < d) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) values[k][i] = logarithm ? values[k][i] - last[i] : values[k][i] * last[i];
      store_first(out + k * inner, from_float<T>(values[k]), valid);
    }
}

}  // namespace

void softmax_cuda_v4_columns(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(softmax_cuda_v4_columns_kernel<T>, column_blocks(args.n, args.d, args.inner),
                 static_cast<const T*>(args.columns), static_cast<T*>(args.y), args.d, args.inner, args.outer_stride,
                 args.step, args.logarithm);
  });
}

void softmax_cuda_v4a_short_columns(const SoftmaxArgs& args, Queue& queue) {
  dispatch_tile_type(args.dtype, [&]<class T>() {
    const int64_t per_block = kShortThreads * kVectorWidth<T>, inner = args.inner > 0 ? args.inner : args.n;
    const T* x = static_cast<const T*>(args.inner > 0 ? args.columns : args.x);
    const auto launch = [&](auto kernel) {
      queue.launch(kernel, early({(args.n + per_block - 1) / per_block, kShortThreads}, queue), x,
                   static_cast<T*>(args.y), args.n, static_cast<int>(args.d), inner, args.outer_stride, args.step,
                   args.logarithm);
    };
    if (args.d <= 2) return launch(softmax_cuda_v4a_short_columns_kernel<T, 2>);
    if (args.d <= 4) return launch(softmax_cuda_v4a_short_columns_kernel<T, 4>);
    launch(softmax_cuda_v4a_short_columns_kernel<T, kSoftmaxShortColumn>);
  });
}

}  // namespace rooflab::kernels
