// The reference rung of fused on the GPU.
#include "kernels/common/launch_size.h"
#include "kernels/fused/reference.h"

namespace rooflab::kernels {
namespace {

constexpr int kChainThreads = 128;

__global__ void __launch_bounds__(kChainThreads)
    fused_cuda_v0_reference_kernel(const __grid_constant__ FusedArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kChainThreads + threadIdx.x;
  if (i < args.launch.count / args.launch.columns) reference_chain(args, i);
}

}  // namespace

void fused_cuda_v0_reference(const FusedArgs& args, Queue& queue) {
  const int64_t threads = args.launch.count / args.launch.columns;
  queue.launch(fused_cuda_v0_reference_kernel, {blocks_of(threads, kChainThreads), kChainThreads}, args);
}

}  // namespace rooflab::kernels
