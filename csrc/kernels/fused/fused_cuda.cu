// The reference rung of fused on the GPU.
#include "kernels/common/launch_size.h"
#include "kernels/fused/reference.h"

namespace rooflab::kernels {
namespace {

constexpr int kChainThreads = 128;

__global__ void __launch_bounds__(kChainThreads)
    fused_cuda_v0_reference_kernel(const __grid_constant__ FusedArgs args, ReferenceSums sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kChainThreads + threadIdx.x;
  if (i < args.launch.count / args.launch.columns) reference_chain(args, i, sums);
}

__global__ void __launch_bounds__(kChainThreads)
    fused_cuda_v0_reference_sums_kernel(const __grid_constant__ FusedArgs args, ReferenceSums sums) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kChainThreads + threadIdx.x;
  if (column < args.launch.columns) sums.store(args, column);
}

}  // namespace

void fused_cuda_v0_reference(const FusedArgs& args, Queue& queue) {
  const auto& [program, launch] = args;
  const int64_t threads = launch.count / launch.columns;
  ReferenceSums sums{nullptr, launch.count};
  if (program.column_sums > 0) sums.sums = queue.scratch<double>(program.column_sums * sums.elements);
  queue.launch(fused_cuda_v0_reference_kernel, {blocks_of(threads, kChainThreads), kChainThreads}, args, sums);
  if (program.column_sums == 0) return;
  queue.launch(fused_cuda_v0_reference_sums_kernel, {blocks_of(launch.columns, kChainThreads), kChainThreads}, args,
               sums);
}

}  // namespace rooflab::kernels
