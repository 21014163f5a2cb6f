// The vectorised CUDA rung of reduce: see reduce.h for what it computes.
#include "kernels/reduce/reduction.cuh"

namespace rooflab::kernels {
namespace {

template <class R, bool kAlong>
__global__ void __launch_bounds__(256)
    reduce_cuda_v2_vectorised_kernel(const typename R::Element* x, typename R::Result* y, typename R::Partial* partial,
                                     ReduceArgs args, ReducePlan plan, ReduceEnd result) {
  reduce_tiles<R, kVectorWidth<typename R::Element>, kAlong>(x, y, partial, args, plan, result);
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
  dispatch_float(args.dtype, "reduce", [&]<class T>() { launch_vectorised<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
