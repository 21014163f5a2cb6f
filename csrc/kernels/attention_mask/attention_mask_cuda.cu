// attention_mask on the GPU: the reference.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention_mask/attention_mask.h"

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
  constexpr int64_t kThreads = 256, kMostBlocks = 4096;
  const int64_t blocks = (args.q_length * args.kv_length + kThreads - 1) / kThreads;
  queue.launch(attention_mask_cuda_v0_reference_kernel, {std::min(blocks, kMostBlocks), kThreads}, args);
}

}  // namespace rooflab::kernels
