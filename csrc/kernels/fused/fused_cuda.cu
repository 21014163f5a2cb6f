// The reference rung of fused on the GPU.
#include "kernels/fused/reference.h"

namespace rooflab::kernels {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) fused_cuda_v0_reference_kernel(const __grid_constant__ FusedArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < args.launch.count) reference_chain(args, i);
}

}  // namespace

void fused_cuda_v0_reference(const FusedArgs& args, Queue& queue) {
  queue.launch(fused_cuda_v0_reference_kernel, {(args.launch.count + kThreads - 1) / kThreads, kThreads}, args);
}

}  // namespace rooflab::kernels
