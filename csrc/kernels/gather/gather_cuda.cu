// gather on the GPU: see gather.h for what it computes.
#include "kernels/common/early_launch.cuh"
#include "kernels/common/out_of_range.cuh"
#include "kernels/common/strided.h"
#include "kernels/gather/gather_strips.cuh"

namespace rooflab::kernels {
namespace {

// Where an element or a row begins in x, if its index is in range.
struct Source {
  bool exists;
  int64_t place;
};

// The source of element i of the first `dims` dimensions of y.
__device__ __forceinline__ Source source_of(const GatherArgs& args, int64_t i, int dims) {
  int64_t place = 0, at = 0;
  for_each_digit_in_turn(i, dims, args.at.sizes, [&](int d, int64_t digit) {
    place += digit * args.x_strides[d];
    at += digit * args.at.strides[d];
  });
  const int64_t number = index_at(args.at, at), index = place_of(number, args.at.from_end);
  if (index >= 0 && index < args.at.limit) return {true, place + index * args.at.step};
  report(args.at.report, out_of_range(args.at, number));
  return {false, 0};
}

// What stands where an index is out of range.
template <class Word>
__device__ __forceinline__ Word mark(DType dtype) {
  Word word;
  memset(&word, dtype == DType::kBool ? 1 : 0xff, sizeof word);
  return word;
}

// Word: what a thread moves at once: an element, or several of a row. All sizes and strides of x are in words.
template <class Word>
__device__ __forceinline__ void gather_words(const GatherArgs& args) {
  const int64_t threads = gridDim.x * int64_t{blockDim.x};
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < args.at.count; i += threads) {
    const Source from = source_of(args, i, args.at.ndim);
    static_cast<Word*>(args.y)[i] = from.exists ? static_cast<const Word*>(args.x)[from.place] : mark<Word>(args.dtype);
  }
}

template <class Word>
__global__ void gather_cuda_v0_reference_kernel(const __grid_constant__ GatherArgs args) {
  gather_words<Word>(args);
}
template <class Word>
__global__ void gather_cuda_v1_vectorised_kernel(const __grid_constant__ GatherArgs args) {
  overlap_launches();
  gather_words<Word>(args);
}

// Each thread has the indices of several elements in flight, and then the elements.
template <class Word>
__global__ void __launch_bounds__(kThreads) gather_cuda_v1a_elements_kernel(const __grid_constant__ GatherArgs args) {
  overlap_launches();
  const int64_t step = gridDim.x * int64_t{kThreads * kAtATime};
  const int64_t first = blockIdx.x * int64_t{kThreads * kAtATime} + threadIdx.x;
  for (int64_t begin = first; begin < args.at.count; begin += step) {
    int64_t place[kAtATime], number[kAtATime];
    bool is_there[kAtATime];
#pragma unroll
    for (int u = 0; u < kAtATime; ++u) {
      const int64_t i = begin + u * kThreads;
      int64_t at = 0;
      place[u] = number[u] = 0;
      is_there[u] = i < args.at.count;
      if (!is_there[u]) continue;
      for_each_digit_in_turn(i, args.at.ndim, args.at.sizes, [&](int d, int64_t digit) {
        place[u] += digit * args.x_strides[d];
        at += digit * args.at.strides[d];
      });
      number[u] = index_at(args.at, at);
    }
    Word moved[kAtATime];
#pragma unroll
    for (int u = 0; u < kAtATime; ++u) {
      const int64_t index = place_of(number[u], args.at.from_end);
      const bool is_inside = index >= 0 && index < args.at.limit;
      moved[u] = mark<Word>(args.dtype);
      if (is_there[u] && is_inside) moved[u] = static_cast<const Word*>(args.x)[place[u] + index * args.at.step];
      if (is_there[u] && !is_inside) report(args.at.report, out_of_range(args.at, number[u]));
    }
#pragma unroll
    for (int u = 0; u < kAtATime; ++u)
      if (is_there[u]) static_cast<Word*>(args.y)[begin + u * kThreads] = moved[u];
  }
}

// A block reads the rows that it chooses from once, and neighbours together; in shared memory it does not matter how
// far apart the chosen ones are. Each number of the index is read once for all rows of the block.
template <class Word>
__global__ void __launch_bounds__(kThreads)
    gather_cuda_v1b_staged_kernel(const __grid_constant__ GatherArgs args, int rows_of_block, bool aligned) {
  extern __shared__ uint4 staged[];
  Word* rows = reinterpret_cast<Word*>(staged);
  const int64_t first = blockIdx.x * int64_t{rows_of_block}, limit = args.at.limit, columns = args.at.sizes[1];
  const int count = static_cast<int>(min(args.at.sizes[0] - first, int64_t{rows_of_block}));
  const int size = static_cast<int>(count * limit), whole = aligned ? size * int{sizeof(Word)} / 16 : 0;
  const Word* x = static_cast<const Word*>(args.x) + first * limit;
  Word* y = static_cast<Word*>(args.y) + first * columns;
  overlap_launches();
#pragma unroll 4
  for (int i = threadIdx.x; i < whole; i += kThreads) staged[i] = reinterpret_cast<const uint4*>(x)[i];
#pragma unroll 4
  for (int i = whole * 16 / int{sizeof(Word)} + threadIdx.x; i < size; i += kThreads) rows[i] = x[i];
  __syncthreads();
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    const int64_t number = index_at(args.at, column * args.at.strides[1]), place = place_of(number, args.at.from_end);
    const bool is_inside = place >= 0 && place < limit;
    if (!is_inside && first == 0) report(args.at.report, out_of_range(args.at, number));
#pragma unroll 4
    for (int row = 0; row < count; ++row)
      y[row * columns + column] = is_inside ? rows[row * limit + place] : mark<Word>(args.dtype);
  }
}

template <class Word>
__global__ void __launch_bounds__(kThreads)
    gather_cuda_v2_rows_kernel(const __grid_constant__ GatherArgs args, const __grid_constant__ Strips strips) {
  constexpr int kWords = kInFlight<Word>;
  overlap_launches();
  const int last = args.at.ndim - 1, group = 1 << strips.shift, lane = threadIdx.x & (group - 1);
  const int64_t length = args.at.sizes[last], step = gridDim.x * int64_t{kThreads >> strips.shift};
  const int64_t first = (blockIdx.x * int64_t{kThreads} + threadIdx.x) >> strips.shift;
  for (int64_t strip = first; strip < strips.count; strip += step) {
    int64_t part;
    const int64_t row = divide(strip, strips.of_row, part);
    const int64_t column = part * (group * kWords) + lane;
    const int left = static_cast<int>(min(length - column, int64_t{kThreads * kWords}));
    const Source from = source_of(args, row, last);
    const Word* x = static_cast<const Word*>(args.x) + from.place + column;
    Word* y = static_cast<Word*>(args.y) + row * length + column;
    Word moved[kWords];
#pragma unroll
    for (int u = 0; u < kWords; ++u) {
      moved[u] = mark<Word>(args.dtype);
      if (from.exists && u * group < left) moved[u] = x[u * group];
    }
#pragma unroll
    for (int u = 0; u < kWords; ++u)
      if (u * group < left) y[u * group] = moved[u];
  }
}

int64_t word_bytes(const GatherArgs& args) {
  return word_bytes(args.at, args.dtype, {args.x, args.y}, {args.x_strides});
}

GatherArgs in_words(GatherArgs args, int64_t bytes) {
  count_words(bytes / size_of(args.dtype), args.at, {args.x_strides});
  return args;
}

}  // namespace

void gather_cuda_v2_rows(const GatherArgs& args, Queue& queue) {
  const int64_t bytes = word_bytes(args);
  const GatherArgs words = in_words(args, bytes);
  const int64_t length = words.at.sizes[words.at.ndim - 1];
  with_word(bytes, [&]<class Word>() {
    const Strips strips = strips_of<Word>(length, words.at.count / length);
    const LaunchShape shape = a_block_each(blocks_of(strips.count, kThreads >> strips.shift));
    queue.launch(gather_cuda_v2_rows_kernel<Word>, early(shape, queue), words, strips);
  });
}

void gather_cuda_v1b_staged(const GatherArgs& args, Queue& queue) {
  const int rows = gather_staged_rows(args);
  const int64_t bytes_of_row = args.at.limit * size_of(args.dtype);
  const LaunchShape shape{.grid = blocks_of(args.at.sizes[0], rows),
                          .block = kThreads,
                          .shared_bytes = (rows * bytes_of_row + 15) / 16 * 16};
  const bool aligned = is_aligned(args.x) && rows * bytes_of_row % 16 == 0;
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8)
      queue.launch(gather_cuda_v1b_staged_kernel<Word>, early(shape, queue), args, rows, aligned);
  });
}

void gather_cuda_v1a_elements(const GatherArgs& args, Queue& queue) {
  const LaunchShape shape = a_block_each(blocks_of(args.at.count, kThreads * kAtATime));
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8) queue.launch(gather_cuda_v1a_elements_kernel<Word>, early(shape, queue), args);
  });
}

void gather_cuda_v1_vectorised(const GatherArgs& args, Queue& queue) {
  const int64_t bytes = word_bytes(args);
  const GatherArgs words = in_words(args, bytes);
  with_word(bytes, [&]<class Word>() {
    queue.launch(gather_cuda_v1_vectorised_kernel<Word>, early(a_thread_each(words.at.count), queue), words);
  });
}

void gather_cuda_v0_reference(const GatherArgs& args, Queue& queue) {
  with_word(size_of(args.dtype), [&]<class Word>() {
    if constexpr (sizeof(Word) <= 8)
      queue.launch(gather_cuda_v0_reference_kernel<Word>, a_thread_each(args.at.count), args);
  });
}

}  // namespace rooflab::kernels
