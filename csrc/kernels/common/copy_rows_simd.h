// Copies of rows between arrays, for *_simd.cpp files (see simd.h).
#pragma once

#include <cstring>

#include "kernels/common/line_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// From a row to the next, and from an element of a row to the next, in elements.
struct Steps {
  int64_t row, element;
};

// Copies rows whose length, or whose steps, are known to the compiler, so that it makes vectors of the loops.
template <class Word>
void copy_rows(const void* from, Steps from_steps, void* to, Steps to_steps, int64_t rows, int64_t run) {
  const int64_t a = from_steps.element, b = to_steps.element;
  const auto with = [&](auto copy) __attribute__((always_inline)) {
    const Word* source = static_cast<const Word*>(from);
    Word* destination = static_cast<Word*>(to);
    for (int64_t row = 0; row < rows; ++row, source += from_steps.row, destination += to_steps.row)
      copy(source, destination);
  };
  const auto of_length = [&]<int kRun>() __attribute__((always_inline)) {
    with([&](const Word* source, Word* destination) __attribute__((always_inline)) {
      for (int i = 0; i < kRun; ++i) destination[i * b] = source[i * a];
    });
  };
  const auto of_steps = [&]<int kFrom>() __attribute__((always_inline)) {
    with([&](const Word* __restrict source, Word* __restrict destination) __attribute__((always_inline)) {
      for (int64_t i = 0; i < run; ++i) destination[i] = source[i * kFrom];
    });
  };
  switch (rows > 1 ? run : 0) {
    case 2: return of_length.template operator()<2>();
    case 3: return of_length.template operator()<3>();
    case 4: return of_length.template operator()<4>();
    case 5: return of_length.template operator()<5>();
    case 6: return of_length.template operator()<6>();
    case 7: return of_length.template operator()<7>();
    case 8: return of_length.template operator()<8>();
    default: break;
  }
  if (b == 1 && a == 1)
    return with([&](const Word* source, Word* destination) __attribute__((always_inline)) {
      std::memcpy(destination, source, static_cast<size_t>(run) * sizeof(Word));
    });
  if (b == 1 && a == 0) return of_steps.template operator()<0>();
  if (b == 1 && a == -1) return of_steps.template operator()<-1>();
  if (b == 1 && a == 2) return of_steps.template operator()<2>();
  with([&](const Word* source, Word* destination) __attribute__((always_inline)) {
    for (int64_t i = 0; i < run; ++i) destination[i * b] = source[i * a];
  });
}

using CopyRows = void (*)(const void*, Steps, void*, Steps, int64_t, int64_t);
ROOFLAB_INLINE CopyRows copy_rows_of(int64_t element_size) {
  switch (element_size) {
    case 1: return copy_rows<uint8_t>;
    case 2: return copy_rows<uint16_t>;
    case 4: return copy_rows<uint32_t>;
    default: return copy_rows<uint64_t>;
  }
}

inline void stream_bytes(char* to, const char* from, int64_t n) {
  const int64_t head = -reinterpret_cast<intptr_t>(to) & 63, aligned = head < n ? head : n;
  std::memcpy(to, from, static_cast<size_t>(aligned));
  int64_t i = aligned;
  for (; i + 64 <= n; i += 64)
    write_line(reinterpret_cast<float*>(to + i), true,
               [&](int64_t) { return load(reinterpret_cast<const float*>(from + i)); });
  std::memcpy(to + i, from + i, static_cast<size_t>(n - i));
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
