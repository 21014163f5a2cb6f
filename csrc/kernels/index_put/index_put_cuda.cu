// index_put on the GPU: see index_put.h for what it computes.
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/index_put/index_put.h"

namespace rooflab::kernels {
namespace {

// The place that number `k` of the index names; -1 if it is out of range.
__device__ __forceinline__ int64_t place_at(const IndexLayout& at, int64_t k) {
  const int64_t place = place_of(index_at(at, k), at.from_end);
  return place >= 0 && place < at.limit ? place : -1;
}

template <class F>
__device__ __forceinline__ void for_each(int64_t count, F&& f) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) f(i);
}

// Which number names a place last is found in scratch, of which only the named places are touched: they are cleared
// first, and then each takes the largest k.
__global__ void index_put_cuda_clear_kernel(const __grid_constant__ IndexPutArgs args, int* last) {
  for_each(args.count, [&](int64_t k) {
    const int64_t place = place_at(args.at, k);
    if (place < 0)
      atomicMin(reinterpret_cast<unsigned long long*>(args.first_outside), static_cast<unsigned long long>(k));
    else
      last[place] = -1;
  });
}

__global__ void index_put_cuda_last_kernel(const __grid_constant__ IndexPutArgs args, int* last) {
  for_each(args.count, [&](int64_t k) {
    const int64_t place = place_at(args.at, k);
    if (place >= 0) atomicMax(&last[place], static_cast<int>(k));
  });
}

// Word: what a thread moves: an element, or 16 bytes of a row. All sizes and strides are in words.
template <class Word>
__device__ __forceinline__ void put_words(const IndexPutArgs& args, const int* last) {
  if (last != nullptr && *args.first_outside >= 0) return;
  for_each(args.at.count, [&](int64_t i) {
    int64_t rest = i, k = 0, from = 0, to = 0;
    for (int d = args.at.ndim - 1; d >= 0; --d) {
      int64_t digit = rest;
      if (d > 0) rest = divide(rest, args.at.sizes[d], digit);
      k += digit * args.at.strides[d];
      from += digit * args.value_strides[d];
      to += digit * args.y_strides[d];
    }
    const int64_t place = place_at(args.at, k);
    if (place >= 0 && (last == nullptr || last[place] == k))
      static_cast<Word*>(args.y)[to + place * args.at.step] = static_cast<const Word*>(args.values)[from];
  });
}

template <class Word>
__global__ void index_put_cuda_v0_reference_kernel(const __grid_constant__ IndexPutArgs args, const int* last) {
  put_words<Word>(args, last);
}
__global__ void index_put_cuda_v1_vectorised_kernel(const __grid_constant__ IndexPutArgs args, const int* last) {
  put_words<uint4>(args, last);
}

void launch(void (*kernel)(IndexPutArgs, const int*), const IndexPutArgs& args, Queue& queue) {
  int* last = nullptr;
  if (!args.distinct) {
    last = queue.scratch<int>(args.at.limit);
    queue.fill(args.first_outside, 0xff, sizeof *args.first_outside);
    queue.launch(index_put_cuda_clear_kernel, a_thread_each(args.count), args, last);
    queue.launch(index_put_cuda_last_kernel, a_thread_each(args.count), args, last);
  }
  queue.launch(kernel, a_thread_each(args.at.count), args, static_cast<const int*>(last));
}

}  // namespace

void index_put_cuda_v0_reference(const IndexPutArgs& args, Queue& queue) {
  const auto kernel = [&] {
    switch (size_of(args.dtype)) {
      case 1: return index_put_cuda_v0_reference_kernel<uint8_t>;
      case 2: return index_put_cuda_v0_reference_kernel<uint16_t>;
      case 4: return index_put_cuda_v0_reference_kernel<uint32_t>;
      default: return index_put_cuda_v0_reference_kernel<uint64_t>;
    }
  }();
  launch(kernel, args, queue);
}

void index_put_cuda_v1_vectorised(const IndexPutArgs& args, Queue& queue) {
  const int64_t width = 16 / size_of(args.dtype);
  const int last = args.at.ndim - 1;
  IndexPutArgs words = args;
  words.at.count /= width;
  words.at.sizes[last] /= width;
  words.at.step /= width;
  for (int d = 0; d < last; ++d) {
    words.value_strides[d] /= width;
    words.y_strides[d] /= width;
  }
  launch(index_put_cuda_v1_vectorised_kernel, words, queue);
}

}  // namespace rooflab::kernels
