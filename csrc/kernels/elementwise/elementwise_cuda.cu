// The CUDA rungs of the elementwise family: the reference, and the choice of the source file that holds an op's kernel.
#include "kernels/elementwise/elementwise_cuda.cuh"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {
namespace {

__global__ void __launch_bounds__(kElementwiseThreads)
    elementwise_cuda_v0_reference_kernel(const __grid_constant__ ElementwiseArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kElementwiseThreads + threadIdx.x;
  if (i < args.count) reference_element(args, i);
}

void launch_compiled(const ElementwiseArgs& args, Queue& queue, ElementwiseRung rung) {
  if (args.op >= ElementwiseOp::kWhere) return launch_movement(args, queue, rung);
  if (info(args.op).arity == 1) return launch_unary(args, queue, rung);
  return launch_binary(args, queue, rung);
}

}  // namespace

void elementwise_cuda_v0_reference(const ElementwiseArgs& args, Queue& queue) {
  const int64_t blocks = (args.count + kElementwiseThreads - 1) / kElementwiseThreads;
  queue.launch(elementwise_cuda_v0_reference_kernel, {blocks, kElementwiseThreads}, args);
}

void elementwise_cuda_v1_strided(const ElementwiseArgs& args, Queue& queue) {
  launch_compiled(args, queue, ElementwiseRung::kStrided);
}

void elementwise_cuda_v2_vectorised(const ElementwiseArgs& args, Queue& queue) {
  launch_compiled(args, queue, ElementwiseRung::kVectorised);
}

void elementwise_cuda_v2a_gathered(const ElementwiseArgs& args, Queue& queue) {
  launch_compiled(args, queue, ElementwiseRung::kGathered);
}

}  // namespace rooflab::kernels
