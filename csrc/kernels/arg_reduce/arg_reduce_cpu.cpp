// arg_reduce on the CPU: see arg_reduce.h for what it computes.
#include <algorithm>
#include <utility>

#include "core/dispatch.h"
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/columns.h"
#include "kernels/common/order.h"

namespace rooflab::kernels {
namespace {

// Outputs [first, first + columns) of one outer position.
template <class T>
void reduce_columns(const ArgReduceArgs& args, int64_t outer, int64_t first, int64_t columns) {
  using C = comparable_t<T>;
  const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride + first * args.inner_stride;
  C best[kColumns];
  int64_t places[kColumns];
  for (int64_t c = 0; c < columns; ++c) {
    best[c] = static_cast<C>(x[c * args.inner_stride]);
    places[c] = 0;
  }
  for (int64_t k = 1; k < args.reduced; ++k) {
    const T* row = x + k * args.reduced_stride;
    for (int64_t c = 0; c < columns; ++c) {
      const C value = static_cast<C>(row[c * args.inner_stride]);
      if (!is_chosen_over(value, best[c], args.largest)) continue;
      best[c] = value;
      places[c] = k;
    }
  }
  const int64_t at = outer * args.inner + first;
  std::copy_n(places, columns, args.indices + at);
  if (args.values)
    for (int64_t c = 0; c < columns; ++c)
      static_cast<T*>(args.values)[at + c] = x[places[c] * args.reduced_stride + c * args.inner_stride];
}

// The largest or smallest of n numbers, NaN if there is one, in independent lanes that the compiler can vectorise.
template <bool kLargest, class C>
C extreme_of(const C* x, int64_t n) {
  constexpr int kLanes = 16;
  C best[kLanes];
  int32_t nans[kLanes] = {};
  std::fill_n(best, kLanes, x[0]);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      const C value = x[i + lane];
      best[lane] = (kLargest ? value > best[lane] : value < best[lane]) ? value : best[lane];
      nans[lane] |= value != value;
    }
  for (int lane = 1; lane < kLanes; ++lane) nans[0] |= nans[lane];
  if (nans[0]) return *std::find_if(x, x + n, [](C value) { return value != value; });
  for (int lane = 1; lane < kLanes; ++lane)
    if (is_chosen_over(best[lane], best[0], kLargest)) best[0] = best[lane];
  for (; i < n; ++i)
    if (is_chosen_over(x[i], best[0], kLargest)) best[0] = x[i];
  return best[0];
}

// One output. The axis is read block by block; a block is searched for the position only if it holds a better element.
template <class T>
void reduce_line(const ArgReduceArgs& args, int64_t outer) {
  using C = comparable_t<T>;
  constexpr int64_t kBlock = 1024;
  const T* x = static_cast<const T*>(args.x) + outer * args.outer_stride;
  C block[kBlock], best{};
  int64_t place = 0;
  for (int64_t begin = 0; begin < args.reduced && best == best; begin += kBlock) {
    const int64_t n = std::min(kBlock, args.reduced - begin);
    for (int64_t j = 0; j < n; ++j) block[j] = static_cast<C>(x[(begin + j) * args.reduced_stride]);
    const C found = args.largest ? extreme_of<true>(block, n) : extreme_of<false>(block, n);
    if (begin > 0 && !is_chosen_over(found, best, args.largest)) continue;
    best = found;
    place =
        begin + (std::find_if(block, block + n, [&](C c) { return c == found || (c != c && found != found); }) - block);
  }
  args.indices[outer] = place;
  if (args.values) static_cast<T*>(args.values)[outer] = x[place * args.reduced_stride];
}

}  // namespace

void arg_reduce_cpu_v0_reference(const ArgReduceArgs& args, Queue&) {
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() {
    for (int64_t outer = 0; outer < args.outer; ++outer)
      for (int64_t i = 0; i < args.inner; ++i) reduce_columns<T>(args, outer, i, 1);
  });
}

void arg_reduce_cpu_v1_parallel(const ArgReduceArgs& given, Queue& queue) {
  constexpr int64_t kShort = 16;  // elements
  ArgReduceArgs args = given;
  if (args.inner == 1 && args.reduced <= kShort) {  // short rows stand side by side
    std::swap(args.outer, args.inner);
    std::swap(args.outer_stride, args.inner_stride);
  }
  dispatch_all(args.dtype, "arg_reduce", [&]<class T>() {
    for_columns(queue, args.outer, args.reduced, args.inner, [&](int64_t outer, int64_t first, int64_t columns) {
      if (args.reduced == 1 && !args.values)
        std::fill_n(args.indices + outer * args.inner + first, columns, 0);
      else if (args.inner == 1)
        reduce_line<T>(args, outer);
      else
        reduce_columns<T>(args, outer, first, columns);
    });
  });
}

}  // namespace rooflab::kernels
