// index_put on the GPU: see index_put.h for what it computes.
#include <climits>

#include "kernels/common/early_launch.cuh"
#include "kernels/common/launch_size.h"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/strided.h"
#include "kernels/gather/gather_strips.cuh"
#include "kernels/index_put/index_put.h"

namespace rooflab::kernels {
namespace {

constexpr int kBlocksOfShortIndex = 8;  // per multiprocessor: each reads the whole index

// The place that number `k` of the index names; -1 if it is out of range.
__device__ __forceinline__ int64_t place_at(const IndexLayout& at, int64_t k) {
  const int64_t place = place_of(index_at(at, k), at.from_end);
  return place >= 0 && place < at.limit ? place : -1;
}

// By one thread: the number `k` of the index is out of range.
__device__ __forceinline__ void report_number(const IndexLayout& at, unsigned k) {
  if (blockIdx.x == 0 && threadIdx.x == 0) report(at.report, out_of_range(at, index_at(at, k)));
}

template <class F>
__device__ __forceinline__ void for_each(int64_t count, F&& f) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += threads) f(i);
}

// Scratch: which number of the index names a place last, and the first number that is out of range.
struct Found {
  int* last;  // null where all numbers are distinct, and in range
  unsigned* first_outside;

  __device__ bool none_outside() const { return last == nullptr || *first_outside == UINT_MAX; }
  // The place that number k is the last to name; -1 if a later one names it, or it is out of range.
  __device__ int64_t place_of_last(const IndexLayout& at, int64_t k) const {
    const int64_t place = place_at(at, k);
    return place < 0 || last == nullptr || last[place] == k ? place : -1;
  }
};

// Of `last`, only the named places are touched: they are cleared first, and then each takes the largest k.
__global__ void index_put_cuda_clear_kernel(const __grid_constant__ IndexPutArgs args, Found found) {
  overlap_launches();
  if (blockIdx.x == 0 && threadIdx.x == 0) *found.first_outside = UINT_MAX;
  for_each(args.count, [&](int64_t k) {
    const int64_t place = place_at(args.at, k);
    if (place >= 0) found.last[place] = -1;
  });
}

__global__ void index_put_cuda_last_kernel(const __grid_constant__ IndexPutArgs args, Found found) {
  overlap_launches();
  for_each(args.count, [&](int64_t k) {
    const int64_t place = place_at(args.at, k);
    if (place >= 0)
      atomicMax(&found.last[place], static_cast<int>(k));
    else
      atomicMin(found.first_outside, static_cast<unsigned>(k));
  });
}

Found find(const IndexPutArgs& args, Queue& queue) {
  if (args.distinct) return {};
  const Found found{queue.scratch<int>(args.at.limit), queue.scratch<unsigned>(1)};
  const LaunchShape shape = early(a_thread_each(args.count), queue);
  queue.launch(index_put_cuda_clear_kernel, shape, args, found);
  queue.launch(index_put_cuda_last_kernel, shape, args, found);
  return found;
}

// Where element i of the first `dims` dimensions is: which number of the index it belongs to, and its offsets.
struct Element {
  int64_t k, from, to;
};
__device__ __forceinline__ Element element_at(const IndexPutArgs& args, int64_t i, int dims) {
  Element element{};
  for (int d = dims - 1; d >= 0; --d) {
    int64_t digit = i;
    if (d > 0) i = divide(i, args.at.sizes[d], digit);
    element.k += digit * args.at.strides[d];
    element.from += digit * args.value_strides[d];
    element.to += digit * args.y_strides[d];
  }
  return element;
}

template <class Word>
__global__ void index_put_cuda_v0_reference_kernel(const __grid_constant__ IndexPutArgs args, Found found) {
  if (!found.none_outside()) return report_number(args.at, *found.first_outside);
  for_each(args.at.count, [&](int64_t i) {
    const Element element = element_at(args, i, args.at.ndim);
    const int64_t place = found.place_of_last(args.at, element.k);
    if (place >= 0)
      static_cast<Word*>(args.y)[element.to + place * args.at.step] =
          static_cast<const Word*>(args.values)[element.from];
  });
}

// In the shared memory of every block: the place that each number of a short index is the last to name; -1 for the
// others.
struct ShortIndex {
  int64_t places[kShortIndex];
  int last[2 * kShortIndex];  // a hash table with open addressing: which number names a place last; -1 in empty slots
  unsigned first_outside;

  // By all threads of the block.
  __device__ __forceinline__ void read(const IndexPutArgs& args) {
    const int count = static_cast<int>(args.count), bits = 32 - __clz(2 * count - 1);
    if (threadIdx.x == 0) first_outside = UINT_MAX;
    for (int slot = threadIdx.x; slot < 1 << bits; slot += kThreads) last[slot] = -1;
    for (int k = threadIdx.x; k < count; k += kThreads) places[k] = place_at(args.at, k);
    __syncthreads();
    for (int k = threadIdx.x; k < count; k += kThreads) {
      if (places[k] < 0)
        atomicMin(&first_outside, static_cast<unsigned>(k));
      else
        atomicMax(&last[slot_of(places[k], bits, [&](int slot) { return atomicCAS(&last[slot], -1, k); })], k);
    }
    __syncthreads();
    if (first_outside != UINT_MAX) return;
    for (int k = threadIdx.x; k < count; k += kThreads)
      if (last[slot_of(places[k], bits, [&](int slot) { return last[slot]; })] != k) places[k] = -1;
    __syncthreads();
  }

 private:
  // The first slot, from the hash on, that is empty or the place's. `number_in` says which number is in a slot.
  template <class NumberIn>
  __device__ __forceinline__ int slot_of(int64_t place, int bits, const NumberIn& number_in) const {
    int slot = static_cast<uint32_t>(place) * 2654435769u >> (32 - bits);  // Knuth's multiplicative hash
    for (int k = number_in(slot); k >= 0 && places[k] != place; k = number_in(slot))
      slot = (slot + 1) & ((1 << bits) - 1);
    return slot;
  }
};

// Word: what a thread moves. All sizes and strides are in words.
template <class Word, bool kIsShort>
__global__ void __launch_bounds__(kThreads)
    index_put_cuda_v1_rows_kernel(const __grid_constant__ IndexPutArgs args, const __grid_constant__ Strips strips,
                                  Found found) {
  constexpr int kWords = kInFlight<Word>;
  __shared__ std::conditional_t<kIsShort, ShortIndex, int> index;
  overlap_launches();
  if constexpr (kIsShort) {
    index.read(args);
    if (index.first_outside != UINT_MAX) return report_number(args.at, index.first_outside);
  } else if (!found.none_outside()) {
    return report_number(args.at, *found.first_outside);
  }
  const int last = args.at.ndim - 1, group = 1 << strips.shift, lane = threadIdx.x & (group - 1);
  const int64_t length = args.at.sizes[last], step = gridDim.x * int64_t{kThreads >> strips.shift};
  const int64_t first = (blockIdx.x * int64_t{kThreads} + threadIdx.x) >> strips.shift;
  for (int64_t strip = first; strip < strips.count; strip += step) {
    int64_t part;
    const Element row = element_at(args, divide(strip, strips.of_row, part), last);
    int64_t place;
    if constexpr (kIsShort)
      place = index.places[row.k];
    else
      place = found.place_of_last(args.at, row.k);
    if (place < 0) continue;
    const int64_t column = part * (group * kWords) + lane;
    const int left = static_cast<int>(min(length - column, int64_t{kThreads * kWords}));
    const Word* values = static_cast<const Word*>(args.values) + row.from + column;
    Word* y = static_cast<Word*>(args.y) + row.to + place * args.at.step + column;
    Word moved[kWords];
#pragma unroll
    for (int u = 0; u < kWords; ++u)
      if (u * group < left) moved[u] = values[u * group];
#pragma unroll
    for (int u = 0; u < kWords; ++u)
      if (u * group < left) y[u * group] = moved[u];
  }
}

// With a dimension more, of size 1, where elements are not in rows.
IndexPutArgs as_rows(IndexPutArgs args) {
  if (are_rows(args)) return args;
  const int last = args.at.ndim++;
  args.at.sizes[last] = args.value_strides[last] = args.y_strides[last] = 1;
  args.at.strides[last] = 0;
  return args;
}

}  // namespace

void index_put_cuda_v1_rows(const IndexPutArgs& args, Queue& queue) {
  IndexPutArgs words = as_rows(args);
  const int64_t bytes =
      word_bytes(words.at, words.dtype, {words.values, words.y}, {words.value_strides, words.y_strides});
  count_words(bytes / size_of(words.dtype), words.at, {words.value_strides, words.y_strides});
  const int64_t length = words.at.sizes[words.at.ndim - 1];
  with_word(bytes, [&]<class Word>() {
    const Strips strips = strips_of<Word>(length, words.at.count / length);
    const int64_t blocks = blocks_of(strips.count, kThreads >> strips.shift);
    if (is_short(args) && !args.distinct) {
      const int64_t most = kBlocksOfShortIndex * queue.target().sm_count;
      queue.launch(index_put_cuda_v1_rows_kernel<Word, true>, early({std::min(blocks, most), kThreads}, queue), words,
                   strips, Found{});
    } else {
      const Found found = find(args, queue);
      queue.launch(index_put_cuda_v1_rows_kernel<Word, false>, early(a_block_each(blocks), queue), words, strips,
                   found);
    }
  });
}

void index_put_cuda_v0_reference(const IndexPutArgs& args, Queue& queue) {
  const Found found = find(args, queue);
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8)
      queue.launch(index_put_cuda_v0_reference_kernel<Word>, a_thread_each(args.at.count), args, found);
  });
}

}  // namespace rooflab::kernels
