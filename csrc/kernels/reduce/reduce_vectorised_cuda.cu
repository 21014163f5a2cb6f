// The vectorised CUDA rung of reduce: see reduce.h for what it computes.
#include "kernels/reduce/reduction.cuh"

namespace rooflab::kernels {
namespace {

// Blocks that a multiprocessor is to hold at once, which limits the registers of a thread. These were the fastest on an
// H200: with fewer, too few loads are in flight, and with more, too many registers spill.
template <class R>
constexpr int resident_blocks() {
  using Element = typename R::Element;
  if (std::is_same_v<Element, bool>) return 2;
  if (std::is_same_v<typename R::Accumulator, Distances>) return sizeof(Element) == 4 ? 3 : 2;
  return std::is_same_v<typename R::Accumulator, double> || std::is_same_v<Element, __nv_bfloat16> ? 3 : 4;
}

template <class R, bool kAlong>
__global__ void __launch_bounds__(256, resident_blocks<R>())
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
  if (args.dtype == DType::kBool) return launch_vectorised<bool>(args, queue);
  dispatch_float(args.dtype, "reduce", [&]<class T>() { launch_vectorised<cuda_type_t<T>>(args, queue); });
}

}  // namespace rooflab::kernels
