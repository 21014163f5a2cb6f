// Whole cache lines for *_simd.cpp files (see simd.h): assembled from vectors, stored past the caches, and processed in
// order where arrays are larger than the caches.
#pragma once

#include "core/queue.h"
#include "core/target.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

template <class T>
constexpr int64_t kLine = 64 / sizeof(T);  // elements: one vector of float or double, two of the 16-bit floats

// Elements before the first whole cache line.
template <class T>
ROOFLAB_INLINE int64_t elements_to_line(const T* p) {
  return (-reinterpret_cast<intptr_t>(p) & 63) / static_cast<int64_t>(sizeof(T));
}

// Writes the line whose vector at offset i is value(i). With `streaming` it bypasses the caches: the line must be
// aligned, and is not read before it is overwritten. A line must be written at once: four stores of 16 bytes took 1.7
// times as long.
template <class T, class Value>
ROOFLAB_INLINE void write_line(T* to, bool streaming, Value value) {
  NativeInt bits[kParts];
  if constexpr (sizeof(T) == 2) {
    const F32x16 vectors[2] = {value(0), value(F32x16::kLanes)};
    const auto part = [&](int i) __attribute__((always_inline)) { return vectors[i / kParts].part[i % kParts]; };
    for (int i = 0; i < kParts; ++i) bits[i] = (NativeInt)narrow<T>(part(2 * i), part(2 * i + 1));
  } else {
    const SimdOf<T> vector = value(0);
    for (int i = 0; i < kParts; ++i) bits[i] = (NativeInt)vector.part[i];
  }
  for (int i = 0; i < kParts; ++i) {
    void* place = reinterpret_cast<char*>(to) + i * kNativeBytes;
    if (streaming)
      stream_register(place, bits[i]);
    else
      std::memcpy(place, &bits[i], kNativeBytes);
  }
}

// A thread processes four parts of its range in turn, one chunk (of lines) at a time, and prefetches the next chunk of
// each meanwhile. A single stream leaves the memory idle during the computation, and reached half of the speed where it
// was measured.
constexpr int64_t kWalks = 4, kChunkLines = 16;

// Calls chunk(first, last) for the chunks of lines [first, last).
template <class Chunk>
ROOFLAB_INLINE void walk_lines(int64_t first, int64_t last, Chunk chunk) {
  const int64_t part = (last - first) / kWalks;
  for (int64_t begin = 0; begin < part; begin += kChunkLines) {
    const int64_t end = begin + kChunkLines < part ? begin + kChunkLines : part;
    for (int64_t p = first; p < first + kWalks * part; p += part) chunk(p + begin, p + end);
  }
  if (first + kWalks * part < last) chunk(first + kWalks * part, last);
}

// Lines that one thread should walk: streams less than 10 MB apart disturb each other.
ROOFLAB_INLINE int64_t lines_of_thread(const Queue& queue, int64_t lines) {
  return larger(lines / queue.target().threads, 1024);
}

// Calls chunk(first, last) for the chunks that make up `lines` lines, on all threads. Streamed stores are visible on
// return.
template <class Chunk>
ROOFLAB_INLINE void parallel_lines(Queue& queue, int64_t lines, Chunk chunk) {
  queue.parallel(lines, lines_of_thread(queue, lines), [&](int64_t first, int64_t last, int) {
    walk_lines(first, last, chunk);
    fence();
  });
}

// Prefetches what the same stream reads kChunkLines lines after `p`.
ROOFLAB_INLINE void prefetch_chunk(const void* p) { prefetch_near(static_cast<const char*>(p) + kChunkLines * 64); }

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
