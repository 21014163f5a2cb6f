// What the *_simd.cpp files of row-wise ops share: rows of (N, D) are distributed over the threads, and each is folded
// and written one vector at a time. A row's tail, and what precedes the first aligned vector of an output row, use
// shorter ones.
#pragma once

#include "kernels/common/line_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// The number of rows that is worth waking a thread for.
ROOFLAB_INLINE int64_t row_grain(int64_t d) { return d >= 32768 ? 1 : 32768 / (d > 0 ? d : 1); }

constexpr int64_t kRun = 4;  // numbers that an accumulator takes before it is folded: if equal, without any error

// Adds up the sums of runs in pairs: error grows with the logarithm of their number. sums_[k] is that of 2^k runs.
template <class V>
class PairwiseSum {
 public:
  ROOFLAB_INLINE void add(V run) {
    int level = 0;
    for (int64_t pairs = runs_++; pairs % 2 == 1; pairs /= 2) run = sums_[level++] + run;
    sums_[level] = run;
  }
  // The sum of all runs, and of `rest`.
  ROOFLAB_INLINE V total(V rest) const {
    int level = 0;
    for (int64_t left = runs_; left > 0; left /= 2, ++level)
      if (left % 2 == 1) rest = sums_[level] + rest;
    return rest;
  }

 private:
  V sums_[48];
  int64_t runs_ = 0;
};

// kSums sums that are formed in one pass; of[k] is a vector, or a number.
template <class V, int kSums>
struct Sums {
  V of[kSums];
};
template <class V, int kSums>
ROOFLAB_INLINE Sums<V, kSums> operator+(Sums<V, kSums> a, const Sums<V, kSums>& b) {
  for (int k = 0; k < kSums; ++k) a.of[k] = a.of[k] + b.of[k];
  return a;
}

// kSums vectors whose lanes add up to sums over i < d. add(i, n, sums) adds to them what the vector that starts at i
// contributes, of which only n lanes count (n is kLanes except at the end): 0 in the others. Several chains hide the
// latency of additions.
template <class T, int kSums, class Add>
ROOFLAB_INLINE auto vectors_of_row(int64_t d, Add add) {
  using S = typename ComputeOf<T>::type;
  using Vectors = Sums<SimdOf<T>, kSums>;
  constexpr int64_t kLanes = SimdOf<T>::kLanes, kChains = kSums == 1 ? 4 : 2, kStep = kChains * kLanes;
  if (d <= kRun * kLanes) {  // as below, with fewer instructions
    Vectors sums;
    for (SimdOf<T>& vector : sums.of) vector = S(0);
    int64_t i = 0;
    for (; i + kLanes <= d; i += kLanes) add(i, kLanes, sums);
    if (i < d) add(i, d - i, sums);
    return sums;
  }
  PairwiseSum<Vectors> runs;
  for (int64_t begin = 0;; begin += kRun * kStep) {
    const int64_t end = smaller(begin + kRun * kStep, d);
    Vectors chains[kChains];
    for (Vectors& chain : chains)
      for (SimdOf<T>& vector : chain.of) vector = S(0);
    int64_t i = begin;
    for (; i + kStep <= end; i += kStep)
      for (int64_t c = 0; c < kChains; ++c) add(i + c * kLanes, kLanes, chains[c]);
    for (; i < end; i += kLanes) add(i, smaller(end - i, kLanes), chains[0]);
    for (int64_t half = kChains / 2; half > 0; half /= 2)
      for (int64_t c = 0; c < half; ++c) chains[c] = chains[c] + chains[c + half];
    if (end == d) return runs.total(chains[0]);
    runs.add(chains[0]);
  }
}

// The sums that the lanes of these vectors add up to.
template <class T, int kSums, class Add>
ROOFLAB_INLINE auto sums_of_row(int64_t d, Add add) {
  const auto vectors = vectors_of_row<T, kSums>(d, add);
  Sums<typename ComputeOf<T>::type, kSums> totals;
  for (int k = 0; k < kSums; ++k) totals.of[k] = sum(vectors.of[k]);
  return totals;
}

// The vector whose lanes add up to the sum over i < d of term(i, n), which is the vector that starts at i, as above.
template <class T, class Term>
ROOFLAB_INLINE auto sum_vector(int64_t d, Term term) {
  return vectors_of_row<T, 1>(
             d, [&](int64_t i, int64_t lanes, auto& sums)
                    __attribute__((always_inline)) { sums.of[0] += term(i, lanes); })
      .of[0];
}
// That sum.
template <class T, class Term>
ROOFLAB_INLINE auto sum_row(int64_t d, Term term) {
  return sum(sum_vector<T>(d, term));
}

constexpr int64_t kShortLine = 16;  // elements that are too few to fill vectors along the line

// Turns short lines, which are line_stride apart, so that they lie side by side: element k is turned[k * width + line].
template <class T>
ROOFLAB_INLINE void turn_lines(const T* x, int64_t lines, int64_t line_stride, int64_t n, int64_t stride, T* turned,
                               int64_t width) {
  for (int64_t k = 0; k < n; ++k)
    for (int64_t line = 0; line < lines; ++line) turned[k * width + line] = x[line * line_stride + k * stride];
}

template <class T>
ROOFLAB_INLINE SimdOf<T> load_lanes(const T* p, int64_t n) {
  return n == SimdOf<T>::kLanes ? load<T>(p) : load<T>(p, n);
}

// A vector whose largest, or smallest, lane is that of x[0, d): NaN if there is one, or ignoring NaNs, at a quarter of
// the instructions.
template <bool kLargest, bool kKeepNan = true, class T>
ROOFLAB_INLINE auto extreme_vector(const T* x, int64_t d) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const auto pick = [](SimdOf<T> a, SimdOf<T> b) __attribute__((always_inline)) {
    if constexpr (kKeepNan)
      return kLargest ? max(a, b) : min(a, b);
    else
      return kLargest ? select(a > b, a, b) : select(a < b, a, b);
  };
  const S worst = kLargest ? -__builtin_inf() : __builtin_inf();
  SimdOf<T> chains[4] = {worst, worst, worst, worst};
  int64_t i = 0;
  const bool is_short = d < 4 * kLanes;
  for (; i + 4 * kLanes <= d; i += 4 * kLanes)
    for (int c = 0; c < 4; ++c) chains[c] = pick(load<T>(x + i + c * kLanes), chains[c]);
  for (; i + kLanes <= d; i += kLanes) chains[0] = pick(load<T>(x + i), chains[0]);
  if (i < d) chains[1] = pick(select(lanes_below<S>(d - i), load<T>(x + i, d - i), SimdOf<T>(worst)), chains[1]);
  chains[0] = pick(chains[0], chains[1]);
  return is_short ? chains[0] : pick(chains[0], pick(chains[2], chains[3]));
}
template <bool kLargest, bool kKeepNan = true, class T>
ROOFLAB_INLINE auto extreme_row(const T* x, int64_t d) {
  const SimdOf<T> folded = extreme_vector<kLargest, kKeepNan>(x, d);
  return kLargest ? max_lane(folded) : min_lane(folded);
}

// Zero in all lanes but the first n.
template <class S>
ROOFLAB_INLINE Simd<S> first_lanes(Simd<S> x, int64_t n) {
  return n == Simd<S>::kLanes ? x : select(lanes_below<S>(n), x, Simd<S>(S(0)));
}

// Prefetches what the next row has at `p`, `stride` elements further on, so that reads continue during the computation.
template <class T>
ROOFLAB_INLINE void prefetch_next(const T* p, int64_t stride) {
  prefetch_far(p + stride);
}

// Writes y[i] for i < d, where value(i, n) is the vector that starts at i, of which n lanes are needed. With
// `streaming`, whole cache lines bypass the caches.
template <class T, class Value>
ROOFLAB_INLINE void write_row(T* y, int64_t d, bool streaming, Value value) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const auto piece = [&](int64_t begin, int64_t end) __attribute__((always_inline)) {
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) store<T>(y + i, value(i, kLanes));
    if (i < end) store<T>(y + i, value(i, end - i), end - i);
  };
  const int64_t gap = elements_to_line(y);
  if (!streaming || gap + kLine < T >> d) return piece(0, d);
  if (gap > 0) piece(0, gap);
  int64_t line = gap;
  for (; line + kLine<T> <= d; line += kLine<T>)
    write_line(
        y + line, true, [&](int64_t i) __attribute__((always_inline)) { return value(line + i, kLanes); });
  if (line < d) piece(line, d);
}

// Calls row(n) for each of `rows` rows of d elements, on all threads; streamed stores are visible on return.
template <class Row>
ROOFLAB_INLINE void for_each_row(Queue& queue, int64_t rows, int64_t d, Row row) {
  queue.parallel(rows, row_grain(d), [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) row(n);
    fence();
  });
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
