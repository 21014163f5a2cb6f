// arange on the GPU: see arange.h for what it computes.
#include "kernels/arange/arange_element.h"
#include "kernels/common/launch_size.h"

namespace rooflab::kernels {
namespace {

__global__ void __launch_bounds__(kThreads) arange_cuda_v0_reference_kernel(const __grid_constant__ ArangeArgs args) {
  const int64_t threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < args.count; i += threads) {
    if (args.in_integers)
      store_as(args.dtype, args.y, i, integer_of(args, i));
    else
      store_as(args.dtype, args.y, i, real_of(args, i));
  }
}

}  // namespace

void arange_cuda_v0_reference(const ArangeArgs& args, Queue& queue) {
  queue.launch(arange_cuda_v0_reference_kernel, a_thread_each(args.count), args);
}

}  // namespace rooflab::kernels
