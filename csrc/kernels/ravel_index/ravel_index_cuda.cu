// ravel_index on a GPU: see ravel_index.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/ravel_index/ravel_index.h"

namespace rooflab::kernels {
namespace {

__global__ void __launch_bounds__(kThreads)
    ravel_index_cuda_v0_reference_kernel(const __grid_constant__ RavelIndexArgs args) {
  overlap_launches();
  const int64_t threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < args.count(); i += threads)
    args.y[i] = place_at(
        args, i, [](const IndexLayout& array, int64_t number) { report(array.report, out_of_range(array, number)); });
}

}  // namespace

void ravel_index_cuda_v0_reference(const RavelIndexArgs& args, Queue& queue) {
  queue.launch(ravel_index_cuda_v0_reference_kernel, early(a_thread_each(args.count()), queue), args);
}

}  // namespace rooflab::kernels
