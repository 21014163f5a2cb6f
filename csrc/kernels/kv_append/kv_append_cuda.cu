// The CUDA rungs of kv_append: see kv_append.h for what they compute.
#include <cuda_runtime.h>

#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/kv_append/kv_append.h"

namespace rooflab::kernels {
namespace {

// Word: what a thread moves: an element, or 16 bytes. All sizes and strides are in words.
template <class Word>
__device__ __forceinline__ void append_words(const KvAppendArgs& args) {
  const int64_t at = blockIdx.x * int64_t{kThreads} + threadIdx.x, position = *args.position;
  if (position < 0 && at == 0) report(args.report, out_of_range(position));
  if (at >= args.batch * args.heads * args.tokens() * args.head_size || position < 0) return;
  const KvAppendRow row(args, position, at / args.head_size);
  const int64_t d = at % args.head_size;
  static_cast<Word*>(args.k_cache)[row.k_to + d] = static_cast<const Word*>(args.k)[row.k_from + d];
  static_cast<Word*>(args.v_cache)[row.v_to + d] = static_cast<const Word*>(args.v)[row.v_from + d];
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    kv_append_cuda_v0_reference_kernel(const __grid_constant__ KvAppendArgs args) {
  append_words<Word>(args);
}
__global__ void __launch_bounds__(kThreads)
    kv_append_cuda_v1_vectorised_kernel(const __grid_constant__ KvAppendArgs args) {
  overlap_launches();
  append_words<uint4>(args);
}

int64_t words_of(const KvAppendArgs& args) { return args.batch * args.heads * args.tokens() * args.head_size; }

}  // namespace

void kv_append_cuda_v0_reference(const KvAppendArgs& args, Queue& queue) {
  const auto kernel = [&] {
    switch (size_of(args.dtype)) {
      case 2: return kv_append_cuda_v0_reference_kernel<uint16_t>;
      case 4: return kv_append_cuda_v0_reference_kernel<uint32_t>;
      default: return kv_append_cuda_v0_reference_kernel<uint64_t>;
    }
  }();
  queue.launch(kernel, {blocks_of(words_of(args)), kThreads}, args);
}

void kv_append_cuda_v1_vectorised(const KvAppendArgs& args, Queue& queue) {
  const int64_t width = 16 / size_of(args.dtype);
  KvAppendArgs words = args;
  words.head_size /= width;
  for (AttentionStrides* strides : {&words.k_strides, &words.v_strides, &words.k_cache_strides, &words.v_cache_strides})
    *strides = {strides->batch / width, strides->head / width, strides->token / width};
  queue.launch(kv_append_cuda_v1_vectorised_kernel, early({blocks_of(words_of(words)), kThreads}, queue), words);
}

}  // namespace rooflab::kernels
