// searchsorted on the GPU: see searchsorted.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/launch_size.h"
#include "kernels/searchsorted/searchsorted.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(kThreads)
    searchsorted_cuda_v0_reference_kernel(const __grid_constant__ SearchsortedArgs args) {
  const int64_t threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < args.rows * args.m; i += threads)
    searchsorted_element<T>(args, i);
}

}  // namespace

void searchsorted_cuda_v0_reference(const SearchsortedArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "searchsorted", [&]<class T>() {
    queue.launch(searchsorted_cuda_v0_reference_kernel<T>, a_thread_each(args.rows * args.m), args);
  });
}

}  // namespace rooflab::kernels
