// For GPU rungs that move rows by an index: neighbouring threads share a strip of a row, in the widest words that fit.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/common/alignment.h"
#include "kernels/common/launch_size.h"
#include "kernels/common/strided.h"
#include "kernels/gather/gather.h"

namespace rooflab::kernels {

// Calls f(d, digit) for each dimension of sizes[ndim], from the last on: element i is number `digit` along it. It takes
// the place of add_offsets, with which nvcc 13.0 reads wrong strides of several arrays for four dimensions. The loop
// stays one, which leaves a thread so few registers that a multiprocessor holds all threads.
template <class F>
__device__ __forceinline__ void for_each_digit_in_turn(int64_t i, int ndim, const int64_t* sizes, F&& f) {
#pragma unroll 1
  for (int d = ndim - 1; d >= 0; --d) {
    int64_t digit = i;
    if (d > 0) i = divide(i, sizes[d], digit);
    f(d, digit);
  }
}

// Elements with an index each that a thread has in flight at once.
inline constexpr int kAtATime = 4;

// How rows are cut: 2^shift neighbouring threads move a strip of a row.
struct Strips {
  int shift;
  int64_t of_row, count;
};

// Words that a thread has in flight, a strip's threads apart.
template <class Word>
constexpr int kInFlight = (sizeof(Word) >= 8 ? 1 : 2) * kGatherStrip / kThreads;

// As few threads as move a row at once, though a warp's if it has words for them.
template <class Word>
Strips strips_of(int64_t length, int64_t rows) {
  constexpr int kWarp = 32;
  Strips strips{};
  const auto group = [&] { return int64_t{1} << strips.shift; };
  while (group() < std::min(length, int64_t{kThreads}) && (group() < kWarp || group() * kInFlight<Word> < length))
    ++strips.shift;
  strips.of_row = blocks_of(length, group() * kInFlight<Word>);
  strips.count = rows * strips.of_row;
  return strips;
}

// The bytes of the widest words that all rows of some arrays consist of, and begin with. An array without strides has
// its rows one after another.
inline int64_t word_bytes(const IndexLayout& at, DType dtype, std::initializer_list<const void*> arrays,
                          std::initializer_list<const int64_t*> strides) {
  const int64_t size = size_of(dtype);
  const int last = at.ndim - 1;
  for (int64_t bytes = 16; bytes > size; bytes /= 2) {
    const auto fits = [&](int64_t elements) { return elements * size % bytes == 0; };
    bool all = fits(at.sizes[last]) && fits(at.step);
    for (const void* array : arrays) all &= is_aligned(array, bytes);
    for (const int64_t* of_array : strides)
      for (int d = 0; d < last; ++d) all &= fits(of_array[d]);
    if (all) return bytes;
  }
  return size;
}

// Counts in words of `width` elements what was counted in elements.
inline void count_words(int64_t width, IndexLayout& at, std::initializer_list<int64_t*> strides) {
  const int last = at.ndim - 1;
  at.count /= width;
  at.sizes[last] /= width;
  at.step /= width;
  for (int64_t* of_array : strides)
    for (int d = 0; d < last; ++d) of_array[d] /= width;
}

// Calls f.template operator()<Word>(), Word of so many bytes.
template <class F>
void with_word(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<uint4>();
  }
}

}  // namespace rooflab::kernels
