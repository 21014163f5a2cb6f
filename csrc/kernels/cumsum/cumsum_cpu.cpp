// cumsum on the CPU: see cumsum.h for what it computes.
#include <type_traits>

#include "core/dispatch.h"
#include "kernels/common/columns.h"
#include "kernels/common/reference.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels {
namespace {

template <class T>
using total_t = std::conditional_t<std::is_integral_v<T>, uint64_t, double>;  // integers wrap around
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <class T>
total_t<T> widened(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  else
    return to_double(value);
}
template <class T>
sum_t<T> narrowed(total_t<T> total) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<int64_t>(total);
  else
    return from_double<T>(total);
}

// One line. Four numbers are added up by themselves first, so that one addition in four waits for the one before it.
// Not those of float64, whose sum may overflow where the sum with the total does not.
template <class T>
void sum_line(const T* x, int64_t x_stride, sum_t<T>* y, int64_t y_stride, int64_t n) {
  total_t<T> total{};
  int64_t k = 0;
  if constexpr (!std::is_same_v<T, double>)
    for (; k + 4 <= n; k += 4) {
      total_t<T> sums[4];
      for (int i = 0; i < 4; ++i) sums[i] = widened(x[(k + i) * x_stride]);
      for (int i = 1; i < 4; ++i) sums[i] += sums[i - 1];
      for (int i = 0; i < 4; ++i) y[(k + i) * y_stride] = narrowed<T>(total + sums[i]);
      total += sums[3];
    }
  for (; k < n; ++k) y[k * y_stride] = narrowed<T>(total += widened(x[k * x_stride]));
}

// `columns` lines side by side, whose elements at the same place are x_step and y_step apart.
template <class T>
void sum_columns(const CumsumArgs& args, const T* x, int64_t x_step, sum_t<T>* y, int64_t y_step, int64_t columns) {
  total_t<T> totals[kColumns] = {};
  for (int64_t k = 0; k < args.n; ++k)
    for (int64_t c = 0; c < columns; ++c)
      y[k * args.y_stride + c * y_step] = narrowed<T>(totals[c] += widened(x[k * args.x_stride + c * x_step]));
}

template <class T>
const T* line_of(const CumsumArgs& args, int64_t outer, int64_t i) {
  return static_cast<const T*>(args.x) + outer * args.x_outer_stride + i * args.x_inner_stride;
}
template <class T>
sum_t<T>* sums_of(const CumsumArgs& args, int64_t outer, int64_t i) {
  return static_cast<sum_t<T>*>(args.y) + outer * args.y_outer_stride + i * args.y_inner_stride;
}

}  // namespace

void cumsum_cpu_v0_reference(const CumsumArgs& args, Queue&) {
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    for (int64_t outer = 0; outer < args.outer; ++outer)
      for (int64_t i = 0; i < args.inner; ++i)
        sum_columns(args, line_of<T>(args, outer, i), 1, sums_of<T>(args, outer, i), 1, 1);
  });
}

void cumsum_cpu_v1_parallel(const CumsumArgs& args, Queue& queue) {
  const bool adjacent = args.x_inner_stride == 1 && args.y_inner_stride == 1;
  dispatch_all(args.dtype, "cumsum", [&]<class T>() {
    for_columns(queue, args.outer, args.n, args.inner, [&](int64_t outer, int64_t first, int64_t columns) {
      const T* x = line_of<T>(args, outer, first);
      sum_t<T>* y = sums_of<T>(args, outer, first);
      if (columns == 1)
        sum_line(x, args.x_stride, y, args.y_stride, args.n);
      else if (adjacent)
        sum_columns(args, x, 1, y, 1, columns);
      else
        sum_columns(args, x, args.x_inner_stride, y, args.y_inner_stride, columns);
    });
  });
}

}  // namespace rooflab::kernels
