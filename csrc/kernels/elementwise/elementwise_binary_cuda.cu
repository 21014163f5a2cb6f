// Elementwise ops of two or three inputs, compiled for each dtype. The six comparisons share one kernel a dtype.
#include "kernels/elementwise/elementwise_cuda.cuh"

namespace rooflab::kernels {

void launch_binary(const ElementwiseArgs& args, Queue& queue, ElementwiseRung rung) {
  with_type(args.dtype, [&]<class Element>(Element) {
    using T = cuda_type_t<Element>;
    if (info(args.op).is_comparison()) return launch_elementwise<ElementwiseOp::kEq, T, T, bool>(args, queue, rung);
    dispatch_arithmetic(args.op, [&]<ElementwiseOp kOp>() {
      if constexpr (info(kOp).arity > 1 && takes<T>(kOp)) launch_elementwise<kOp, T, T, T>(args, queue, rung);
    });
  });
}

}  // namespace rooflab::kernels
