// The spread of numbers, from which a variance follows, as the SIMD rung of reduce forms it: in two passes over a piece
// that the cache holds, and pieces joined in double.
#pragma once

#include "kernels/common/row_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// How many elements there are, their mean as a sum of two numbers, because it alone would be rounded too coarsely where
// they are large and alike, and the squares of their distances from it.
struct Spread {
  double count, center, rest, squares;
};

// Of two groups of elements together: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.
ROOFLAB_INLINE Spread together(const Spread& a, const Spread& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double count = a.count + b.count, share = b.count / count;
  const double distance = (b.center - a.center) + (b.rest - a.rest);
  return {count, a.center, a.rest + distance * share, a.squares + b.squares + distance * distance * (a.count * share)};
}

// Distances whose squares are less than kTiny, which float does not hold well, are multiplied by kUnit.
constexpr float kTiny = 0x1p-100f, kUnit = 0x1p96f;

// n elements, of which the sum of the distances from `center`, times `unit`, and the sum of the squares of these are
// known. If they overflowed float, they are formed again in double; so is `center`, which need not be the mean.
template <class T, class S>
ROOFLAB_INLINE Spread spread_about(S center, double unit, S distances, S squares, const T* x, int64_t n,
                                   int64_t stride) {
  const double count = static_cast<double>(n);
  double about = center, sum = distances / unit, sum_of_squares = squares / unit / unit;
  if (sizeof(S) < 8 && !__builtin_isfinite(squares)) {
    const auto element = [&](int64_t i) {
      S lanes[SimdOf<T>::kLanes];
      store<S>(lanes, load<T>(x + i * stride, 1));
      return static_cast<double>(lanes[0]);
    };
    about = sum = sum_of_squares = 0;
    for (int64_t i = 0; i < n; ++i) about += element(i) / count;
    for (int64_t i = 0; i < n; ++i) {
      const double distance = element(i) - about;
      sum += distance;
      sum_of_squares += distance * distance;
    }
  }
  const double rest = sum / count, variation = sum_of_squares - rest * sum;
  return {count, about, rest, variation < 0 ? 0 : variation};
}

// Of n neighbours, which are in the cache when they are read again.
template <class T>
ROOFLAB_INLINE Spread spread_along(const T* x, int64_t n) {
  using S = typename ComputeOf<T>::type;
  const S sum = sum_row<T>(
      n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(x + i, lanes); });
  const S center = sum / static_cast<S>(n);
  const auto sums_with = [&](S unit) {
    return sums_of_row<T, 2>(
        n, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
          const SimdOf<T> distance = load_lanes(x + i, lanes) - SimdOf<T>(center);
          const SimdOf<T> scaled = first_lanes<S>(distance * SimdOf<T>(unit), lanes);
          sums.of[0] += scaled;
          sums.of[1] += scaled * scaled;
        });
  };
  const auto sums = sums_with(1);
  if (sizeof(S) == 8 || !(sums.of[1] < kTiny)) return spread_about(center, 1, sums.of[0], sums.of[1], x, n, 1);
  const auto scaled = sums_with(kUnit);
  return spread_about(center, kUnit, scaled.of[0], scaled.of[1], x, n, 1);
}

// kSums sums, to which add(k, sums) adds what row k < n contributes.
template <class T, int kSums, class Add>
ROOFLAB_INLINE Sums<SimdOf<T>, kSums> sums_across(int64_t n, Add add) {
  using S = typename ComputeOf<T>::type;
  PairwiseSum<Sums<SimdOf<T>, kSums>> runs;
  int64_t k = 0;
  const auto run_to = [&](int64_t end) __attribute__((always_inline)) {
    Sums<SimdOf<T>, kSums> run;
    for (SimdOf<T>& vector : run.of) vector = S(0);
    for (; k < end; ++k) add(k, run);
    return run;
  };
  while (k + kRun < n) runs.add(run_to(k + kRun));
  return runs.total(run_to(n));
}

// Joins to totals[c] the n elements, `stride` apart, of each column of kVectors vectors, the last of `lanes` columns.
template <int kVectors, class T>
ROOFLAB_INLINE void spread_across(const T* x, int64_t n, int64_t stride, int64_t lanes, Spread* totals) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const int64_t columns = (kVectors - 1) * kLanes + lanes;
  const auto element = [&](int64_t k, int v) __attribute__((always_inline)) {
    return load_lanes(x + k * stride + v * kLanes, v < kVectors - 1 ? kLanes : lanes);
  };
  auto centers = sums_across<T, kVectors>(
      n, [&](int64_t k, auto& sums) __attribute__((always_inline)) {
        for (int v = 0; v < kVectors; ++v) sums.of[v] += element(k, v);
      });
  for (SimdOf<T>& center : centers.of) center = center * SimdOf<T>(S(1) / static_cast<S>(n));
  Sums<SimdOf<T>, kVectors> units;
  for (SimdOf<T>& unit : units.of) unit = S(1);
  const auto sums_with_units = [&] {
    return sums_across<T, 2 * kVectors>(
        n, [&](int64_t k, auto& sums) __attribute__((always_inline)) {
          for (int v = 0; v < kVectors; ++v) {
            const SimdOf<T> distance = (element(k, v) - centers.of[v]) * units.of[v];
            sums.of[2 * v] += distance;
            sums.of[2 * v + 1] += distance * distance;
          }
        });
  };
  auto sums = sums_with_units();
  bool any_is_tiny = false;
  for (int v = 0; v < kVectors && sizeof(S) < 8; ++v) {
    SimdOf<T> squares = sums.of[2 * v + 1];
    if (v == kVectors - 1 && lanes < kLanes) squares = select(lanes_below<S>(lanes), squares, SimdOf<T>(S(1)));
    const auto is_tiny = squares < SimdOf<T>(S(kTiny));
    units.of[v] = select(is_tiny, SimdOf<T>(S(kUnit)), units.of[v]);
    any_is_tiny |= any(is_tiny);
  }
  if (any_is_tiny) sums = sums_with_units();

  S center[kVectors * kLanes], unit[kVectors * kLanes], distances[kVectors * kLanes], squares[kVectors * kLanes];
  for (int v = 0; v < kVectors; ++v) {
    store<S>(center + v * kLanes, centers.of[v]);
    store<S>(unit + v * kLanes, units.of[v]);
    store<S>(distances + v * kLanes, sums.of[2 * v]);
    store<S>(squares + v * kLanes, sums.of[2 * v + 1]);
  }
  for (int64_t c = 0; c < columns; ++c)
    totals[c] = together(totals[c], spread_about(center[c], unit[c], distances[c], squares[c], x + c, n, stride));
}

}  // namespace
}  // namespace rooflab::kernels::ROOFLAB_ISA
