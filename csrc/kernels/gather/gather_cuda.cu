// gather on the GPU: see gather.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {
namespace {

// Word: what a thread moves: an element, or 16 bytes of a row. All sizes and strides of x are in words.
template <class Word>
__device__ __forceinline__ void gather_words(const GatherArgs& args) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.at.count; i += threads) {
    // Written out here, because with add_offsets nvcc 13.0 reads wrong strides for four dimensions.
    int64_t rest = i, place = 0, at = 0;
    for (int d = args.at.ndim - 1; d >= 0; --d) {
      int64_t digit = rest;
      if (d > 0) rest = divide(rest, args.at.sizes[d], digit);
      place += digit * args.x_strides[d];
      at += digit * args.at.strides[d];
    }
    const int64_t index = index_at(args.at, at);
    Word word;
    if (index >= 0 && index < args.at.limit)
      word = static_cast<const Word*>(args.x)[place + index * args.at.step];
    else
      memset(&word, args.dtype == DType::kBool ? 1 : 0xff, sizeof word);
    static_cast<Word*>(args.y)[i] = word;
  }
}

template <class Word>
__global__ void gather_cuda_v0_reference_kernel(const __grid_constant__ GatherArgs args) {
  gather_words<Word>(args);
}
__global__ void gather_cuda_v1_vectorised_kernel(const __grid_constant__ GatherArgs args) {
  overlap_launches();
  gather_words<uint4>(args);
}

}  // namespace

void gather_cuda_v0_reference(const GatherArgs& args, Queue& queue) {
  const auto kernel = [&] {
    switch (size_of(args.dtype)) {
      case 1: return gather_cuda_v0_reference_kernel<uint8_t>;
      case 2: return gather_cuda_v0_reference_kernel<uint16_t>;
      case 4: return gather_cuda_v0_reference_kernel<uint32_t>;
      default: return gather_cuda_v0_reference_kernel<uint64_t>;
    }
  }();
  queue.launch(kernel, a_thread_each(args.at.count), args);
}

void gather_cuda_v1_vectorised(const GatherArgs& args, Queue& queue) {
  const int64_t width = 16 / size_of(args.dtype);
  const int last = args.at.ndim - 1;
  GatherArgs words = args;
  words.at.count /= width;
  words.at.sizes[last] /= width;
  words.at.step /= width;
  for (int d = 0; d < last; ++d) words.x_strides[d] /= width;
  queue.launch(gather_cuda_v1_vectorised_kernel, early(a_thread_each(words.at.count), queue), words);
}

}  // namespace rooflab::kernels
