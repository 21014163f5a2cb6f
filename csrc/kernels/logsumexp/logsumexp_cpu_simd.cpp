// The SIMD rung of logsumexp on the CPU: see logsumexp.h.
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

// Short rows, each in a lane.
template <class T>
ROOFLAB_INLINE void logsumexp_short_rows(const T* x, int64_t rows, int64_t row_stride, int64_t d, T* y) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  T turned[kShortLine * kLanes] = {};
  turn_lines(x, rows, row_stride, d, 1, turned, kLanes);
  SimdOf<T> maximum = load<T>(turned), sum = S(0);
  for (int64_t k = 1; k < d; ++k) maximum = max(maximum, load<T>(turned + k * kLanes));
  for (int64_t k = 0; k < d; ++k) sum += exp(load<T>(turned + k * kLanes) - maximum);
  store<T>(y, maximum + log(sum), rows);
  if (!any(sum != sum)) return;
  S sums[kLanes];
  store<S>(sums, sum);
  for (int64_t row = 0; row < rows; ++row) {
    if (sums[row] == sums[row]) continue;  // its maximum is finite
    T line[kShortLine];
    for (int64_t k = 0; k < d; ++k) line[k] = turned[k * kLanes + row];
    y[row] = logsumexp_row(line, d);
  }
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

}  // namespace rooflab::kernels::ROOFLAB_ISA
