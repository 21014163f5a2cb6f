// The SIMD rungs of logsumexp on the CPU: see logsumexp.h.
#include "kernels/common/columns.h"
#include "kernels/common/max_sum_simd.h"
#include "kernels/logsumexp/logsumexp.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// What a row has that is not finite: its sum of exponentials is NaN. A NaN comes before +inf.
template <class T, class S>
S not_finite(const T* x, int64_t d) {
  for (int64_t k = 0; k < d; ++k)
    if (const auto value = static_cast<S>(x[k]); value != value) return value;
  return S(__builtin_inf());
}

template <class T>
ROOFLAB_INLINE T logsumexp_row(const T* x, int64_t d) {
  using S = typename ComputeOf<T>::type;
  const auto [maximum, sum] = max_sum_row<T>(x, d);
  const S shift = maximum == S(-__builtin_inf()) ? S(0) : maximum;
  return static_cast<T>(sum == sum ? shift + S(__builtin_log(sum)) : not_finite<T, S>(x, d));
}

// Neighbouring columns of d elements, kVectors vectors of them: vector v of row k is element(k, v).
template <class S, int kVectors, class Element>
ROOFLAB_INLINE Sums<Simd<S>, kVectors> logsumexp_of_columns(int64_t d, Element element) {
  const int64_t length = block_length(d, 64);
  Simd<S> maximum[kVectors], shift[kVectors];
  Sums<Simd<S>, kVectors> sum;
  for (int v = 0; v < kVectors; ++v) maximum[v] = -S(__builtin_inf()), shift[v] = sum.of[v] = S(0);
  for (int64_t begin = 0; begin < d; begin += length) {
    const int64_t end = smaller(begin + length, d);
    Simd<S> last[kVectors];
    for (int v = 0; v < kVectors; ++v) last[v] = maximum[v];
    for (int64_t k = begin; k < end; ++k)
      for (int v = 0; v < kVectors; ++v) maximum[v] = max(maximum[v], element(k, v));
    for (int v = 0; v < kVectors; ++v) {
      shift[v] = select(maximum[v] == -S(__builtin_inf()), Simd<S>(S(0)), maximum[v]);
      if (begin > 0) sum.of[v] = sum.of[v] * exp(last[v] - shift[v]);
    }
    sum = sum + sum_exponentials_of_columns<S, kVectors>(begin, end, shift, element, [](int64_t, int, Simd<S>) {});
  }
  Sums<Simd<S>, kVectors> result;
  for (int v = 0; v < kVectors; ++v)  // where the maximum is +inf or NaN, so is the result, and the sum is NaN
    result.of[v] = select(maximum[v] < S(__builtin_inf()), shift[v] + log(sum.of[v]), maximum[v]);
  return result;
}

// Short rows, each in a lane.
template <class T>
ROOFLAB_INLINE void logsumexp_short_rows(const T* x, int64_t rows, int64_t row_stride, int64_t d, T* y) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  T turned[kShortLine * kLanes];
  turn_lines(x, rows, row_stride, d, 1, turned, kLanes);
  const auto result = logsumexp_of_columns<typename ComputeOf<T>::type, 1>(
      d, [&](int64_t k, int) __attribute__((always_inline)) { return load_lanes(turned + k * kLanes, rows); });
  store<T>(y, result.of[0], rows);
}

// Neighbouring columns, kVectors vectors of them, of which the last counts `lanes`.
template <class T, int kVectors>
ROOFLAB_INLINE void logsumexp_columns(const LogsumexpArgs& args, const T* x, T* y, int64_t lanes) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const auto result = logsumexp_of_columns<typename ComputeOf<T>::type, kVectors>(
      args.reduced, [&](int64_t k, int v) __attribute__((always_inline)) {
        return load_lanes(x + k * args.reduced_stride + v * kLanes, lanes);
      });
  for (int v = 0; v < kVectors; ++v)
    lanes == kLanes ? store<T>(y + v * kLanes, result.of[v]) : store<T>(y + v * kLanes, result.of[v], lanes);
}

}  // namespace

void logsumexp_cpu_v1_simd(const LogsumexpArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    if (has_adjacent_rows(args) && args.reduced > 0 && args.reduced <= kShortLine) {
      constexpr int64_t kLanes = SimdOf<T>::kLanes;
      return queue.parallel(parts_of(args.outer, kLanes), row_grain(args.reduced * kLanes),
                            [&](int64_t begin, int64_t end, int) {
                              for (int64_t row = begin * kLanes; row < smaller(end * kLanes, args.outer); row += kLanes)
                                logsumexp_short_rows(static_cast<const T*>(args.x) + row * args.outer_stride,
                                                     smaller(kLanes, args.outer - row), args.outer_stride, args.reduced,
                                                     static_cast<T*>(args.y) + row);
                            });
    }
    const int64_t columns = smaller(args.inner, kLogsumexpColumns);
    const int64_t d = args.reduced, groups = parts_of(args.inner, columns);
    const int64_t workers = logsumexp_workers(args, queue.target());
    const int64_t part = part_of_worker(columns * d, sizeof(T));
    T* scratch = has_adjacent_rows(args) ? nullptr : queue.scratch<T>(workers * part);
    const int64_t grain = row_grain(d * columns);
    queue.parallel(args.outer * groups, grain, workers, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t outer = group / groups, first = group % groups * columns;
        const int64_t count = smaller(columns, args.inner - first);
        const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + first * args.inner_stride;
        T* y = static_cast<T*>(args.y) + outer * args.inner + first;
        T* turned = scratch + (scratch ? worker * part : 0);
        for (int64_t k = 0; scratch && k < d; ++k)
          for (int64_t c = 0; c < count; ++c) turned[c * d + k] = x[k * args.reduced_stride + c * args.inner_stride];
        for (int64_t c = 0; c < count; ++c) y[c] = logsumexp_row(scratch ? turned + c * d : x, d);
      }
      fence();
    });
  });
}

void logsumexp_cpu_v2_columns(const LogsumexpArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    for_columns(queue, args.outer, args.reduced, args.inner, [&](int64_t outer, int64_t first, int64_t count) {
      const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + first;
      T* y = static_cast<T*>(args.y) + outer * args.inner + first;
      if (count == kColumns) return logsumexp_columns<T, kColumns / kLanes>(args, x, y, kLanes);
      for (int64_t c = 0; c < count; c += kLanes)
        logsumexp_columns<T, 1>(args, x + c, y + c, smaller(kLanes, count - c));
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
