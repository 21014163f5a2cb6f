// The CUDA rung of softmax for rows that are columns: see softmax.h.
#include "core/dispatch.h"
#include "kernels/common/column_tile.cuh"
#include "kernels/common/max_sum.cuh"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {
namespace {

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

}  // namespace

void softmax_cuda_v4_columns(const SoftmaxArgs& args, Queue& queue) {
  dispatch_floating(args.dtype, "softmax", [&]<class Element>() {
    using T = cuda_type_t<Element>;
    queue.launch(softmax_cuda_v4_columns_kernel<T>, column_blocks(args.n, args.d, args.inner),
                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args.d, args.inner, args.outer_stride,
                 args.step, args.logarithm);
  });
}

}  // namespace rooflab::kernels
