// What the *_simd.cpp files of row-wise ops share: rows of (N, D) dealt to threads, folded and written a vector at a
// time. A row's tail and what precedes the first aligned vector of an output row pass as shorter vectors.
#pragma once

#include "core/queue.h"
#include "kernels/common/simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Rows that are worth a thread.
ROOFLAB_INLINE int64_t row_grain(int64_t d) { return d >= 32768 ? 1 : 32768 / (d > 0 ? d : 1); }

// The sum over i < d of term(i, n): the vector that starts at i, of whose lanes only n count (kLanes, save at the end).
// `term` gives 0 in the others. Four chains of additions hide their latency and keep their rounding apart.
template <class T, class Term>
ROOFLAB_INLINE auto sum_row(int64_t d, Term term) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  SimdOf<T> chains[4] = {0, 0, 0, 0};
  int64_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes)
    for (int c = 0; c < 4; ++c) chains[c] += term(i + c * kLanes, kLanes);
  for (; i < d; i += kLanes) chains[0] += term(i, d - i < kLanes ? d - i : kLanes);
  return sum((chains[0] + chains[1]) + (chains[2] + chains[3]));
}

template <class T>
ROOFLAB_INLINE SimdOf<T> load_lanes(const T* p, int64_t n) {
  return n == SimdOf<T>::kLanes ? load<T>(p) : load<T>(p, n);
}

// The largest, or smallest, of x[0, d); NaN if there is one.
template <bool kLargest, class T>
ROOFLAB_INLINE auto extreme_row(const T* x, int64_t d) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const auto pick = [](SimdOf<T> a, SimdOf<T> b) __attribute__((always_inline)) {
    return kLargest ? max(a, b) : min(a, b);
  };
  const S worst = kLargest ? -__builtin_inf() : __builtin_inf();
  SimdOf<T> chains[4] = {worst, worst, worst, worst};
  int64_t i = 0;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes)
    for (int c = 0; c < 4; ++c) chains[c] = pick(chains[c], load<T>(x + i + c * kLanes));
  for (; i + kLanes <= d; i += kLanes) chains[0] = pick(chains[0], load<T>(x + i));
  const SimdOf<T> folded = pick(pick(chains[0], chains[1]), pick(chains[2], chains[3]));
  S best = kLargest ? max_lane(folded) : min_lane(folded);
  if (i < d) {
    S tail[kLanes];
    store<S>(tail, load<T>(x + i, d - i));
    for (int64_t k = 0; k < d - i; ++k) {
      const bool wins = kLargest ? tail[k] > best : tail[k] < best;
      best = wins || tail[k] != tail[k] ? tail[k] : best;
    }
  }
  return best;
}

// Zero in all lanes but the first n.
template <class S>
ROOFLAB_INLINE Simd<S> first_lanes(Simd<S> x, int64_t n) {
  return n == Simd<S>::kLanes ? x : load<S>(reinterpret_cast<const S*>(&x), n);
}

// A vector of elements past the caches: their lines are not read before they are overwritten. `p` is aligned to 16.
template <class T>
ROOFLAB_INLINE void stream(T* p, SimdOf<T> x) {
  alignas(64) T elements[SimdOf<T>::kLanes];
  store<T>(elements, x);
  for (unsigned i = 0; i < sizeof(elements) / 16; ++i)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p) + i, reinterpret_cast<const __m128i*>(elements)[i]);
}

// Writes y[i] for i < d, where value(i, n) is the vector that starts at i, of which n lanes are wanted.
template <class T, class Value>
ROOFLAB_INLINE void write_row(T* y, int64_t d, bool streaming, Value value) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes, kBytes = kLanes * sizeof(T);
  int64_t i = 0;
  if (streaming) {
    const int64_t gap = -reinterpret_cast<intptr_t>(y) & (kBytes - 1), head = gap / static_cast<int64_t>(sizeof(T));
    i = head < d ? head : d;
    if (i > 0) store<T>(y, value(0, i), i);
    for (; i + kLanes <= d; i += kLanes) stream<T>(y + i, value(i, kLanes));
  } else {
    for (; i + kLanes <= d; i += kLanes) store<T>(y + i, value(i, kLanes));
  }
  if (i < d) store<T>(y + i, value(i, d - i), d - i);
}

// Calls row(n) for each of `rows` rows of d elements, on all threads; streamed stores are visible on return.
template <class Row>
ROOFLAB_INLINE void for_each_row(Queue& queue, int64_t rows, int64_t d, Row row) {
  queue.parallel(rows, row_grain(d), [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) row(n);
    _mm_sfence();
  });
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
