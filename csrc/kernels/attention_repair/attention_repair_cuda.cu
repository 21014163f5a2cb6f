// attention_repair on the GPU: the reference.
#include "core/dispatch.h"
#include "kernels/attention_repair/attention_repair.h"
#include "kernels/common/launch_size.h"

namespace rooflab::kernels {
namespace {

template <class T>
__global__ void attention_repair_cuda_v0_reference_kernel(const __grid_constant__ AttentionRepairArgs args) {
  const int64_t count = args.sizes[0] * args.sizes[1] * args.sizes[2] * args.sizes[3];
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads)
    static_cast<T*>(args.y)[i] = repaired_element<T>(args, i);
}

}  // namespace

void attention_repair_cuda_v0_reference(const AttentionRepairArgs& args, Queue& queue) {
  const int64_t count = args.sizes[0] * args.sizes[1] * args.sizes[2] * args.sizes[3];
  dispatch_floating(args.dtype, "attention_repair", [&]<class T>() {
    queue.launch(attention_repair_cuda_v0_reference_kernel<T>, a_thread_each(count), args);
  });
}

}  // namespace rooflab::kernels
