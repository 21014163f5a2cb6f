// Elementwise ops of one input, compiled for each dtype.
#include "kernels/elementwise/elementwise_cuda.cuh"

namespace rooflab::kernels {

void launch_unary(const ElementwiseArgs& args, Queue& queue, ElementwiseRung rung) {
  with_type(args.dtype, [&]<class Element>(Element) {
    using T = cuda_type_t<Element>;
    dispatch_arithmetic(args.op, [&]<ElementwiseOp kOp>() {
      if constexpr (info(kOp).arity == 1 && takes<T>(kOp)) launch_elementwise<kOp, T, T, T>(args, queue, rung);
    });
  });
}

}  // namespace rooflab::kernels
