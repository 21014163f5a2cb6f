// attention_mask on the GPU: the reference.
#include "kernels/attention/attention.h"
#include "kernels/attention_mask/attention_mask.h"
#include "kernels/common/launch_size.h"

namespace rooflab::kernels {
namespace {

__global__ void attention_mask_cuda_v0_reference_kernel(AttentionMaskArgs args) {
  const int64_t count = args.q_length * args.kv_length;
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < count; at += int64_t{gridDim.x} * blockDim.x) {
    const int64_t i = at / args.kv_length, j = at % args.kv_length;
    const KeyRange seen = visible_keys(i, args.q_length, args.kv_length, args.is_causal, args.window);
    args.y[at] = seen.begin <= j && j < seen.end;
  }
}

}  // namespace

void attention_mask_cuda_v0_reference(const AttentionMaskArgs& args, Queue& queue) {
  queue.launch(attention_mask_cuda_v0_reference_kernel, a_thread_each(args.q_length * args.kv_length), args);
}

}  // namespace rooflab::kernels
