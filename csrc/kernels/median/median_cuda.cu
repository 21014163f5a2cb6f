// median on the GPU: see median.h for what it computes.
#include "core/architecture.cuh"
#include "core/dispatch.h"
#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/order.h"
#include "kernels/common/reduce.cuh"
#include "kernels/median/median.h"
#include "kernels/sort/sort_cuda_rank_search.cuh"

namespace rooflab::kernels {
namespace {

// Where the middle element is among the sorted ones.
__device__ __forceinline__ int64_t middle_of(int64_t n, bool has_nan) { return has_nan ? n - 1 : (n - 1) / 2; }

// The key that no number has, but a NaN; of integers there is none such.
__device__ __forceinline__ bool is_nan(uint64_t key, int bytes, bool floating) {
  return floating && key == ~uint64_t{0} >> (64 - 8 * bytes);
}

template <class T>
__global__ void median_cuda_v0_reference_kernel(MedianArgs args) {
  using C = comparable_t<T>;
  const int64_t count = args.outer * args.n * args.inner, threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t at = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; at < count; at += threads) {
    const int64_t i = at % args.inner, own = at / args.inner % args.n, outer = at / args.inner / args.n;
    const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + i * args.inner_stride;
    const C value = static_cast<C>(x[own * args.n_stride]);
    int64_t less = 0, equal = 0;
    bool is_first = true, has_nan = false;
    for (int64_t k = 0; k < args.n; ++k) {
      const C other = static_cast<C>(x[k * args.n_stride]);
      const bool is_less = sorts_before(other, value, false), is_equal = !is_less && !sorts_before(value, other, false);
      less += is_less;
      equal += is_equal;
      is_first &= !is_equal || k >= own;
      has_nan |= other != other;
    }
    const int64_t middle = middle_of(args.n, has_nan);
    if (!is_first || middle < less || middle >= less + equal) continue;
    args.indices[outer * args.inner + i] = own;
    static_cast<T*>(args.values)[outer * args.inner + i] = x[own * args.n_stride];
  }
}

// `sorted` are the lines in order, and `places` where each element was.
__global__ void __launch_bounds__(kThreads)
    median_cuda_v1_radix_sort_kernel(const __grid_constant__ MedianArgs args, const __grid_constant__ SortArgs sorted,
                                     const int64_t* places, int bytes, bool floating) {
  wait_for_previous_kernel();
  const int64_t lines = args.outer * args.inner, threads = gridDim.x * int64_t{kThreads};
  for (int64_t number = blockIdx.x * int64_t{kThreads} + threadIdx.x; number < lines; number += threads) {
    const Line line(sorted, bytes, number);
    const bool has_nan = is_nan(line.key(sorted, args.n - 1), bytes, floating);
    const int64_t middle = middle_of(args.n, has_nan);
    const uint64_t key = line.key(sorted, middle);
    int64_t first = 0, last = middle;  // between them the elements that equal it begin
    while (first < last) {
      const int64_t half = (first + last) / 2;
      if (line.key(sorted, half) < key)
        first = half + 1;
      else
        last = half;
    }
    Line(args, bytes, number).write(args, 0, places[(line.outer * args.n + first) * args.inner + line.inner]);
  }
}

// The sum over the warp: one instruction from sm_80 on.
__device__ __forceinline__ int warp_sum(int value) {
#ifdef ROOFLAB_SM80
  return __reduce_add_sync(~0u, value);
#else
  return warp_reduce(value, Add{});
#endif
}

// kTeam threads take a line. Each keeps the keys of its elements, which no other thread reads.
template <class Key, int kTeam>
__global__ void __launch_bounds__(kThreads)
    median_cuda_v2_bits_kernel(const __grid_constant__ MedianArgs args, bool floating) {
  constexpr int kTeams = kThreads / kTeam, kBytes = sizeof(Key), kKeys = kMedianBytes / kBytes / kTeams;
  static_assert(kTeams == 1 || kKeys >= kMedianShort);
  __shared__ Key keys[kTeams][kKeys];
  __shared__ typename BlockReduction<int>::Scratch scratch;
  BlockReduction<int> block(scratch);
  const auto fold = [&](int value, int identity, auto op) {  // over the team
    value = warp_reduce(value, op);
    return kTeam == kWarp ? value : block.across_warps(value, identity, op);
  };
  const int team = threadIdx.x / kTeam, member = threadIdx.x % kTeam, n = static_cast<int>(args.n);
  const int64_t lines = args.outer * args.inner;
  for (int64_t number = blockIdx.x * int64_t{kTeams} + team; number < lines; number += gridDim.x * int64_t{kTeams}) {
    const Line line(args, kBytes, number);
    Key* own = keys[team];
    int nans = 0;
    for (int i = member; i < n; i += kTeam) {
      own[i] = static_cast<Key>(line.key(args, i));
      nans |= is_nan(own[i], kBytes, floating);
    }
    const int middle = static_cast<int>(middle_of(n, fold(nans, 0, Add{}) > 0));
    Key found = 0;  // the largest key that has no more than `middle` below it
    for (Key bit = Key{1} << (8 * kBytes - 1); bit > 0; bit >>= 1) {
      const Key trial = found | bit;
      int below = 0;
      for (int i = member; i < n; i += kTeam) below += own[i] < trial;
      below = warp_sum(below);
      if (kTeam > kWarp) below = block.across_warps(below, 0, Add{});
      if (below <= middle) found = trial;
    }
    int first = n;
    for (int i = member; i < n && first == n; i += kTeam)
      if (own[i] == found) first = i;
    first = fold(first, n, Min{});
    if (member == 0) line.write(args, 0, first);
  }
}

template <class Key>
void select_by_bits(const MedianArgs& args, Queue& queue) {
  const int64_t lines = args.outer * args.inner;
  const bool floating = is_floating(args.dtype);
  if (args.n <= kMedianShort)
    queue.launch(median_cuda_v2_bits_kernel<Key, kWarp>, a_block_each(blocks_of(lines, kThreads / kWarp)), args,
                 floating);
  else
    queue.launch(median_cuda_v2_bits_kernel<Key, kThreads>, a_block_each(lines), args, floating);
}

// A block finds the middle of a line.
template <class Key, int kThreadsOfBlock>
__global__ void __launch_bounds__(kThreadsOfBlock)
    median_cuda_v3_radix_select_kernel(const __grid_constant__ MedianArgs args, bool floating) {
  constexpr int kBytes = sizeof(Key), kHeld = kMedianBytes / kBytes;
  __shared__ Key held[kHeld];
  __shared__ RankSearch<kThreadsOfBlock> search;
  __shared__ unsigned first;  // the place of the first element that equals the middle one
  for (int64_t number = blockIdx.x; number < args.outer * args.inner; number += gridDim.x) {
    const Line line(args, kBytes, number);
    const KeysOfLine<Key, kHeld, kThreadsOfBlock> keys{args, line, held};
    bool has_nan = false;
    keys.for_each_at_first([&](int64_t, Key key) { has_nan |= is_nan(key, kBytes, floating); });
    if (threadIdx.x == 0) first = ~0u;
    uint32_t rank = static_cast<uint32_t>(middle_of(args.n, __syncthreads_or(has_nan)));
    const Key middle = search.template find<Key>(
        8 * kBytes, rank, [&](auto&& visit) { keys.for_each([&](int64_t, Key key) { visit(key); }); });
    unsigned own = ~0u;
    keys.for_each([&](int64_t i, Key key) {
      if (key == middle) own = min(own, static_cast<unsigned>(i));
    });
    if (own != ~0u) atomicMin(&first, own);
    __syncthreads();
    if (threadIdx.x == 0) line.write(args, 0, first);
    __syncthreads();
  }
}

template <class Key>
void select_by_digits(const MedianArgs& args, Queue& queue) {
  const int64_t blocks = std::min(args.outer * args.inner, kMostBlocks);
  const bool floating = is_floating(args.dtype);
  if (args.n <= kSelectShort)
    queue.launch(median_cuda_v3_radix_select_kernel<Key, 256>, {blocks, 256}, args, floating);
  else
    queue.launch(median_cuda_v3_radix_select_kernel<Key, 1024>, {blocks, 1024}, args, floating);
}

}  // namespace

void median_cuda_v0_reference(const MedianArgs& args, Queue& queue) {
  dispatch_all(args.dtype, "median", [&]<class T>() {
    queue.launch(median_cuda_v0_reference_kernel<T>, a_thread_each(args.outer * args.n * args.inner), args);
  });
}

void median_cuda_v1_radix_sort(const MedianArgs& args, Queue& queue) {
  SortArgs sorted = median_lines_to_sort(args);
  const int64_t lines = args.outer * args.inner, count = lines * args.n, size = size_of(args.dtype);
  const int64_t of_sort = sort_radix_bytes(sorted);
  auto* places = static_cast<int64_t*>(queue.scratch_bytes(count * 8 + of_sort + count * size));
  char* scratch = reinterpret_cast<char*>(places + count);
  sorted.indices = places;
  sorted.values = scratch + of_sort;
  sort_by_radix(sorted, queue, scratch);
  sorted.x = sorted.values;
  sorted.outer_stride = args.n * args.inner;
  sorted.n_stride = args.inner;
  sorted.inner_stride = 1;
  queue.launch(median_cuda_v1_radix_sort_kernel, early(a_thread_each(lines), queue), args, sorted, places,
               static_cast<int>(size), is_floating(args.dtype));
}

void median_cuda_v2_bits(const MedianArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 8: return select_by_bits<uint64_t>(args, queue);
    case 4: return select_by_bits<uint32_t>(args, queue);
    default: return select_by_bits<uint16_t>(args, queue);
  }
}

void median_cuda_v3_radix_select(const MedianArgs& args, Queue& queue) {
  switch (size_of(args.dtype)) {
    case 8: return select_by_digits<uint64_t>(args, queue);
    case 4: return select_by_digits<uint32_t>(args, queue);
    default: return select_by_digits<uint16_t>(args, queue);
  }
}

}  // namespace rooflab::kernels
