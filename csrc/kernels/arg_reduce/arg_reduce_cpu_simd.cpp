// The SIMD rung of arg_reduce on the CPU: see arg_reduce.h for what it computes.
#include "kernels/arg_reduce/arg_reduce.h"
#include "kernels/common/row_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Where x first has `value`, which it has; for a NaN, where its first NaN is.
template <class T, class S>
ROOFLAB_INLINE int64_t place_of(const T* x, int64_t n, S value) {
  constexpr S kLane[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  for (int64_t i = 0;; i += kLanes) {
    const int64_t lanes = smaller(kLanes, n - i);
    const SimdOf<T> vector = load_lanes(x + i, lanes);
    const Mask<S> has_value = (value == value ? vector == value : vector != vector) & lanes_below<S>(lanes);
    const S lane = min_lane(select(has_value, load<S>(kLane), SimdOf<T>(S(kLanes))));
    if (lane < S(kLanes)) return i + static_cast<int64_t>(lane);
  }
}

// The row is read block by block; only the first block that has the extreme element is searched for its place.
template <bool kLargest, class T>
ROOFLAB_INLINE int64_t place_of_extreme(const T* x, int64_t n) {
  constexpr int64_t kBlock = 1024;
  auto best = extreme_row<kLargest>(x, smaller(kBlock, n));
  int64_t block = 0;
  for (int64_t begin = kBlock; begin < n && best == best; begin += kBlock) {
    const auto found = extreme_row<kLargest>(x + begin, smaller(kBlock, n - begin));
    if (found != found || (kLargest ? found > best : found < best)) best = found, block = begin;
  }
  return block + place_of(x + block, n - block, best);
}

// Short rows, side by side: each vector holds one element of every row.
template <bool kLargest, class T>
void places_in_short_rows(const T* x, int64_t rows, int64_t stride, int64_t n, int64_t* places) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  T turned[kShortLine * kLanes] = {};
  turn_lines(x, rows, stride, n, 1, turned, kLanes);
  SimdOf<T> best = load_lanes(turned, rows), place = S(0);
  for (int64_t k = 1; k < n; ++k) {
    const SimdOf<T> value = load_lanes(turned + k * kLanes, rows);
    const Mask<S> wins = (kLargest ? value > best : value < best) | ((value != value) & (best == best));
    best = select(wins, value, best);
    place = select(wins, SimdOf<T>(S(k)), place);
  }
  S numbers[kLanes];
  store<S>(numbers, place);
  for (int64_t row = 0; row < rows; ++row) places[row] = static_cast<int64_t>(numbers[row]);
}

template <bool kLargest, class T>
void run(const ArgReduceArgs& args, Queue& queue) {
  const int64_t n = args.reduced, stride = args.outer_stride, together = n <= kShortLine ? SimdOf<T>::kLanes : 1;
  for_each_row(queue, parts_of(args.outer, together), together * n, [&](int64_t block) {
    const int64_t first = block * together, rows = smaller(together, args.outer - first);
    const T* x = static_cast<const T*>(args.x) + first * stride;
    int64_t* places = args.indices + first;
    if (n <= kShortLine)
      places_in_short_rows<kLargest>(x, rows, stride, n, places);
    else
      *places = place_of_extreme<kLargest>(x, n);
    if (args.values)
      for (int64_t row = 0; row < rows; ++row)
        static_cast<T*>(args.values)[first + row] = x[row * stride + places[row]];
  });
}

}  // namespace

void arg_reduce_cpu_v2_simd(const ArgReduceArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() { args.largest ? run<true, T>(args, queue) : run<false, T>(args, queue); });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
