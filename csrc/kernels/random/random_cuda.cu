// Random numbers on the GPU.
#include "kernels/common/launch_size.h"
#include "kernels/common/vector_load.cuh"
#include "kernels/random/philox.h"

namespace rooflab::kernels {
namespace {

template <RandomKind kKind, class T>
__global__ void __launch_bounds__(kThreads) random_cuda_v0_reference_kernel(const __grid_constant__ RandomArgs args) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= args.count) return;
  T block[kPerBlock<T>];
  random_block<kKind>(args, i / kPerBlock<T>, block);
  for (int k = 0; k < kPerBlock<T>; ++k)
    if (k == i % kPerBlock<T>) static_cast<T*>(args.out)[i] = block[k];
}

template <RandomKind kKind, class T>
__global__ void __launch_bounds__(kThreads) random_cuda_v1_blocked_kernel(const __grid_constant__ RandomArgs args) {
  constexpr int kWidth = kPerBlock<T>;
  const int64_t counter = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x, begin = counter * kWidth;
  if (begin >= args.count) return;
  Vector<T, kWidth> block;
  random_block<kKind>(args, counter, block.values);
  T* out = static_cast<T*>(args.out) + begin;
  if (begin + kWidth <= args.count) {
    store_vector(out, block);
  } else {
    for (int k = 0; k < kWidth; ++k)
      if (begin + k < args.count) out[k] = block[k];
  }
}

}  // namespace

void random_cuda_v0_reference(const RandomArgs& args, Queue& queue) {
  dispatch_random(args, [&]<RandomKind kKind, class T>() {
    queue.launch(random_cuda_v0_reference_kernel<kKind, T>, {blocks_of(args.count), kThreads}, args);
  });
}

void random_cuda_v1_blocked(const RandomArgs& args, Queue& queue) {
  dispatch_random(args, [&]<RandomKind kKind, class T>() {
    const int64_t blocks = blocks_of(args.count, kThreads * kPerBlock<T>);
    queue.launch(random_cuda_v1_blocked_kernel<kKind, T>, {blocks, kThreads}, args);
  });
}

}  // namespace rooflab::kernels
