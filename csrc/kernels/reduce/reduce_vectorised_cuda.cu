// The vectorised CUDA rung of reduce: see reduce.h for what it computes.
#include "kernels/reduce/reduction.cuh"

namespace rooflab::kernels {
namespace {

template <class R, bool kAlong>
__global__ void __launch_bounds__(256)
    reduce_cuda_v2_vectorised_kernel(const typename R::Element* x, typename R::Result* y, typename R::Partial* partial,
                                     ReduceArgs args, ReducePlan plan, double divisor) {
  reduce_tiles<R, kVectorWidth<typename R::Element>, kAlong>(x, y, partial, args, plan, divisor);
}

template <class T>
void launch_vectorised(const ReduceArgs& args, Queue& queue) {
  const ReducePlan plan = reduce_v2_plan(args);
  dispatch_reduction<T>(args, [&]<class R>() {
    launch_reduce<R>(
        plan.along ? reduce_cuda_v2_vectorised_kernel<R, true> : reduce_cuda_v2_vectorised_kernel<R, false>, args, plan,
        queue);
  });
}

}  // namespace

void reduce_cuda_v2_vectorised(const ReduceArgs& args, Queue& queue) {
  switch (args.dtype) {
    case DType::kFloat32: return launch_vectorised<float>(args, queue);
    case DType::kFloat16: return launch_vectorised<__half>(args, queue);
    default: return launch_vectorised<__nv_bfloat16>(args, queue);
  }
}

}  // namespace rooflab::kernels
