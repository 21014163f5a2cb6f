// The rung of topk that finds its last element first: see sort.h for what it computes. A block takes a line, finds the
// key of rank `keep` - 1 by digits, and collects the elements up to it. Only these are put in order.
#include "kernels/common/launch_size.h"
#include "kernels/sort/sort_cuda_rank_search.cuh"

namespace rooflab::kernels {
namespace {

template <class Key, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    sort_cuda_v5_radix_select_kernel(const __grid_constant__ SortArgs args) {
  using Item = std::conditional_t<sizeof(Key) == 8, WideItem, uint64_t>;
  constexpr int kBytes = sizeof(Key), kHeld = kSelectBytes / kBytes;
  __shared__ Key held[kHeld];
  __shared__ Item kept[kSelectMost];
  __shared__ RankSearch<kThreadsOfBlock> search;
  __shared__ unsigned count;
  const int keep = static_cast<int>(args.keep);
  for (int64_t number = blockIdx.x; number < args.outer * args.inner; number += gridDim.x) {
    const Line line(args, kBytes, number);
    const KeysOfLine<Key, kHeld, kThreadsOfBlock> keys{args, line, held};
    if (keys.is_held()) keys.for_each_at_first([](int64_t, Key) {});
    if (threadIdx.x == 0) count = 0;

    uint32_t rank = keep - 1;
    const Key last = search.template find<Key>(
        8 * kBytes, rank, [&](auto&& visit) { keys.for_each([&](int64_t, Key key) { visit(key); }); });
    // Of elements that equal the last one, the first in the line are taken.
    uint32_t last_place = ~0u;
    if (rank + 1 < search.count)
      last_place = search.template find<uint32_t>(64 - __clzll(args.n), rank, [&](auto&& visit) {
        keys.for_each([&](int64_t i, Key key) {
          if (key == last) visit(static_cast<uint32_t>(i));
        });
      });
    keys.for_each([&](int64_t i, Key key) {
      if (key < last || (key == last && i <= last_place)) kept[atomicAdd(&count, 1u)] = pack<Item>(key, i);
    });
    __syncthreads();
    for (int slot = threadIdx.x; slot < keep; slot += kThreadsOfBlock) {
      int earlier = 0;
      for (int other = 0; other < keep; ++other) earlier += is_before(kept[other], kept[slot]);
      line.write_item(args, earlier, kept[slot]);
    }
    __syncthreads();
  }
}

template <class Key>
void select(const SortArgs& args, Queue& queue) {
  const int64_t blocks = std::min(args.outer * args.inner, kMostBlocks);
  if (args.n <= kSelectShort)
    queue.launch(sort_cuda_v5_radix_select_kernel<Key, 256>, {blocks, 256}, args);
  else
    queue.launch(sort_cuda_v5_radix_select_kernel<Key, 1024>, {blocks, 1024}, args);
}

}  // namespace

void sort_cuda_v5_radix_select(const SortArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 8: return select<uint64_t>(args, queue);
    case 4: return select<uint32_t>(args, queue);
    case 2: return select<uint16_t>(args, queue);
    default: return select<uint8_t>(args, queue);
  }
}

}  // namespace rooflab::kernels
