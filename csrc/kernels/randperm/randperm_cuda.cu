// randperm on the GPU: see randperm.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/randperm/randperm.h"
#include "kernels/sort/sort_cuda_packed.cuh"

namespace rooflab::kernels {
namespace {

constexpr int kDraws = 4;  // of a Philox block

__device__ __forceinline__ void draw_items(const RandomArgs& args, uint64_t* items) {
  const int64_t counter = blockIdx.x * int64_t{kThreads} + threadIdx.x, begin = counter * kDraws;
  if (begin >= args.count) return;
  const PhiloxBlock block(args.seed, stream_of(args), counter);
  for (int k = 0; k < kDraws; ++k)
    if (begin + k < args.count) items[begin + k] = drawn_item(block.words[k], begin + k);
}

// Moves each item among its neighbours that are_alike(): on by one for each that comes before it and stands behind it,
// and back for each that stands before it and comes behind.
template <class Alike>
__device__ __forceinline__ void rank_items(const RandomArgs& args, const uint64_t* items, Alike&& are_alike) {
  const DrawnOrder is_before(args);
  const int64_t threads = gridDim.x * int64_t{kThreads};
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < args.count; i += threads) {
    const uint64_t item = items[i];
    int64_t to = i;
    for (int64_t at = i - 1; at >= 0 && are_alike(items[at], item); --at) to -= is_before(item, items[at]);
    for (int64_t at = i + 1; at < args.count && are_alike(items[at], item); ++at) to += is_before(items[at], item);
    static_cast<int64_t*>(args.out)[to] = static_cast<uint32_t>(item);
  }
}

__global__ void __launch_bounds__(kThreads)
    randperm_cuda_v0_reference_draw_kernel(const __grid_constant__ RandomArgs args, uint64_t* items) {
  draw_items(args, items);
}
__global__ void __launch_bounds__(kThreads)
    randperm_cuda_v0_reference_kernel(const __grid_constant__ RandomArgs args, const uint64_t* items) {
  rank_items(args, items, [](uint64_t, uint64_t) { return true; });
}

__global__ void __launch_bounds__(kThreads)
    randperm_cuda_v1_radix_draw_kernel(const __grid_constant__ RandomArgs args, uint64_t* items) {
  overlap_launches();
  draw_items(args, items);
}
__global__ void __launch_bounds__(kThreads)
    randperm_cuda_v1_radix_kernel(const __grid_constant__ RandomArgs args, const uint64_t* items, int sorted_bits) {
  overlap_launches();
  rank_items(args, items, [&](uint64_t a, uint64_t b) { return (a ^ b) >> (64 - sorted_bits) == 0; });
}

}  // namespace

void randperm_cuda_v0_reference(const RandomArgs& args, Queue& queue) {
  uint64_t* items = queue.scratch<uint64_t>(args.count);
  queue.launch(randperm_cuda_v0_reference_draw_kernel, {blocks_of(args.count, kThreads * kDraws), kThreads}, args,
               items);
  queue.launch(randperm_cuda_v0_reference_kernel, a_thread_each(args.count), args, items);
}

void randperm_cuda_v1_radix(const RandomArgs& args, Queue& queue) {
  uint64_t* own = queue.scratch<uint64_t>(args.count);
  void* counts = queue.scratch_bytes(randperm_count_bytes(args.count));
  uint64_t* out = static_cast<uint64_t*>(args.out);
  // The result is the other buffer, so the items have to come out in this rung's own.
  const int digits = randperm_digits(args.count);
  uint64_t* items = digits % 2 == 0 ? own : out;
  const LaunchShape draws{blocks_of(args.count, kThreads * kDraws), kThreads};
  queue.launch(randperm_cuda_v1_radix_draw_kernel, early(draws, queue), args, items);
  sort_by_upper_digits(items, items == own ? out : own, args.count, digits, counts, queue);
  queue.launch(randperm_cuda_v1_radix_kernel, early(a_thread_each(args.count), queue), args, own, 8 * digits);
}

}  // namespace rooflab::kernels
