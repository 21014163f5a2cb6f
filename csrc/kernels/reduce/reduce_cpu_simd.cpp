// The SIMD rung of reduce on the CPU: see reduce.h for what it computes, and reduce_ladder.cpp for what was measured.
#include <type_traits>

#include "kernels/common/row_simd.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/spread_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int64_t kColumns = 64;      // outputs of a task, at most: neighbours in y
constexpr int64_t kElements = 32768;  // a task of fewer is not worth a thread, and one of more is cut
constexpr int64_t kTasks = 64;        // the reduced axis is split into pieces until there are this many tasks
constexpr int64_t kChunk = 16384;     // elements folded in float before the result is added to a total in double
constexpr int64_t kGather = 512;
constexpr int64_t kRows = 256;  // of columns, folded in float before the results are added to totals in double

template <ReduceOp kOp, class T>
struct TotalOf {
  using type = double;
};
template <class T>
struct TotalOf<ReduceOp::kVar, T> {
  using type = Spread;
};
template <ReduceOp kOp>
struct TotalOf<kOp, int64_t> {
  using type = int64_t;
};
template <ReduceOp kOp>
struct TotalOf<kOp, int32_t> {
  using type = int64_t;
};
template <ReduceOp kOp>
struct TotalOf<kOp, bool> {
  using type = int64_t;
};
template <ReduceOp kOp, class T>
using total_t = std::conditional_t<is_truth(kOp), int64_t, typename TotalOf<kOp, T>::type>;
template <class T>
constexpr bool kIsInteger = static_cast<total_t<ReduceOp::kSum, T>>(0.5) == 0;

constexpr bool is_sum(ReduceOp op) { return op == ReduceOp::kSum || op == ReduceOp::kMean; }

template <ReduceOp kOp>
ROOFLAB_INLINE double fold(double a, double b) {
  if (is_sum(kOp)) return a + b;
  if (kOp == ReduceOp::kProd) return a * b;
  const bool wins = kOp == ReduceOp::kMax ? a > b : a < b;
  return wins || a != a ? a : b;
}
template <ReduceOp kOp>
ROOFLAB_INLINE int64_t fold(int64_t a, int64_t b) {  // sums and products wrap around
  if (is_truth(kOp)) return kOp == ReduceOp::kAny ? a | b : a & b;
  if (is_sum(kOp)) return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  if (kOp == ReduceOp::kProd) return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  return (kOp == ReduceOp::kMax) == (a > b) ? a : b;
}

template <ReduceOp kOp>
ROOFLAB_INLINE Spread fold(const Spread& a, const Spread& b) {
  return together(a, b);
}

template <ReduceOp kOp, class A>
constexpr A identity() {
  if constexpr (is_sum(kOp) || kOp == ReduceOp::kVar || kOp == ReduceOp::kAny)
    return {};
  else if constexpr (kOp == ReduceOp::kAll)
    return 1;
  else if constexpr (kOp == ReduceOp::kProd)
    return 1;
  else if constexpr (static_cast<A>(0.5) == 0)
    return kOp == ReduceOp::kMax ? INT64_MIN : INT64_MAX;
  else
    return kOp == ReduceOp::kMax ? -__builtin_inf() : __builtin_inf();
}

// `sum` or, where it overflowed float on the way, the sum of the same n elements in double.
template <class T, class S>
ROOFLAB_INLINE double in_range(S sum, const T* x, int64_t n, int64_t stride) {
  if (sizeof(S) == 8 || __builtin_isfinite(sum)) return sum;
  double again = 0;
  for (int64_t i = 0; i < n; ++i) {
    S lanes[SimdOf<T>::kLanes];
    store<S>(lanes, load<T>(x + i * stride, 1));
    again += lanes[0];
  }
  return again;
}

// The sum of n floating-point elements. load(i, lanes) gives those from i on, which lie `stride` apart.
template <class T, class Load>
ROOFLAB_INLINE double sum_of(const T* x, int64_t n, int64_t stride, Load load) {
  if constexpr (sizeof(T) == 8) return sum_row<T>(n, load);  // nothing wider to add chunks in
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t size = smaller(n - begin, kChunk);
    const auto found = sum_row<T>(
        size, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load(begin + i, lanes); });
    total += in_range(found, x + begin * stride, size, stride);
  }
  return total;
}

// The products, in double, of n vectors of neighbouring columns, `stride` apart; the last columns may be fewer.
template <class T>
ROOFLAB_INLINE void multiply_across(const T* x, int64_t n, int64_t stride, int64_t lanes, double* products) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  for (int64_t k = 0; k < n; ++k) {
    S numbers[kLanes];
    store<S>(numbers, load_lanes(x + k * stride, lanes));
    for (int64_t i = 0; i < lanes; ++i) products[i] *= numbers[i];
  }
}

template <class T>
ROOFLAB_INLINE double product_of(const T* x, int64_t n) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  double products[kLanes], total = 1;
  for (double& product : products) product = 1;
  multiply_across(x, n / kLanes, kLanes, kLanes, products);
  multiply_across(x + n / kLanes * kLanes, n % kLanes > 0, kLanes, n % kLanes, products);
  for (const double product : products) total *= product;
  return total;
}

// n bools, as bytes that hold 0 or 1. A byte holds the sum of 255 of them.
template <ReduceOp kOp>
int64_t fold_bytes(const uint8_t* x, int64_t n) {
  constexpr int64_t kLanes = 64, kMost = 255;
  int64_t total = identity<kOp, int64_t>(), at = 0;
  while (n - at >= kLanes) {
    const int64_t end = at + smaller((n - at) / kLanes, kMost) * kLanes;
    uint8_t lanes[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) lanes[i] = x[at + i];
    for (at += kLanes; at < end; at += kLanes)
      for (int64_t i = 0; i < kLanes; ++i) {
        const uint8_t bit = x[at + i];
        lanes[i] = is_sum(kOp) ? lanes[i] + bit : kOp == ReduceOp::kMax ? lanes[i] | bit : lanes[i] & bit;
      }
    for (const uint8_t lane : lanes) total = fold<kOp>(total, int64_t{lane});
  }
  for (; at < n; ++at) total = fold<kOp>(total, int64_t{x[at]});
  return total;
}

// The bits of an element, which are not all 0 where it is not 0: those of a float without its sign.
template <class T>
using bits_t = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
template <class T>
ROOFLAB_INLINE bits_t<T> truth_of(const T* x) {
  bits_t<T> bits;
  __builtin_memcpy(&bits, x, sizeof(T));
  return kIsInteger<T> ? bits : static_cast<bits_t<T>>(bits << 1);
}

template <ReduceOp kOp, class T>
int64_t fold_truths(const T* x, int64_t n) {
  constexpr bool kIsAny = kOp == ReduceOp::kAny;
  bits_t<T> any = 0, none = 0;  // not 0 where an element is not 0, and where one is
  for (int64_t i = 0; i < n; ++i) {
    any |= truth_of(x + i);
    none |= truth_of(x + i) == 0;
  }
  return kIsAny ? any != 0 : none == 0;
}

// n neighbours.
template <ReduceOp kOp, class T>
total_t<kOp, T> fold_along(const T* x, int64_t n) {
  if constexpr (is_truth(kOp)) {
    return fold_truths<kOp>(x, n);
  } else if constexpr (sizeof(T) == 1) {
    return fold_bytes<kOp>(reinterpret_cast<const uint8_t*>(x), n);
  } else if constexpr (kIsInteger<T>) {
    total_t<kOp, T> total = identity<kOp, total_t<kOp, T>>();
    for (int64_t i = 0; i < n; ++i) total = fold<kOp>(total, static_cast<int64_t>(x[i]));
    return total;
  } else if constexpr (is_sum(kOp)) {
    return sum_of(
        x, n, 1, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(x + i, lanes); });
  } else if constexpr (kOp == ReduceOp::kVar) {
    Spread total{};
    for (int64_t begin = 0; begin < n; begin += kChunk)
      total = together(total, spread_along(x + begin, smaller(n - begin, kChunk)));
    return total;
  } else if constexpr (kOp == ReduceOp::kProd) {
    return product_of(x, n);
  } else {
    return extreme_row<kOp == ReduceOp::kMax>(x, n);
  }
}

// n elements, `stride` apart.
template <ReduceOp kOp, class T>
total_t<kOp, T> fold_strided(const T* x, int64_t n, int64_t stride) {
  if (stride == 1) return fold_along<kOp>(x, n);
  if constexpr (is_sum(kOp) && !kIsInteger<T>)
    return sum_of(
        x, n, stride, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
          T gathered[SimdOf<T>::kLanes] = {};
          for (int64_t k = 0; k < lanes; ++k) gathered[k] = x[(i + k) * stride];
          return load<T>(gathered);
        });
  total_t<kOp, T> total = identity<kOp, total_t<kOp, T>>();
  T gathered[kGather];
  for (int64_t begin = 0; begin < n; begin += kGather) {
    const int64_t size = n - begin < kGather ? n - begin : kGather;
    for (int64_t i = 0; i < size; ++i) gathered[i] = x[(begin + i) * stride];
    total = fold<kOp>(total, fold_along<kOp>(gathered, size));
  }
  return total;
}

// Sums or extremes of as many rows of n floating-point elements as a vector has lanes.
template <ReduceOp kOp, class T>
void reduce_rows(const T* x, int64_t n, int64_t row_stride, double* totals) {
  using S = typename ComputeOf<T>::type;
  constexpr int kLanes = SimdOf<T>::kLanes;
  SimdOf<T> rows[kLanes], folded;
  for (int row = 0; row < kLanes; ++row) {
    const T* of_row = x + row * row_stride;
    if constexpr (is_sum(kOp))
      rows[row] = sum_vector<T>(
          n, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(of_row + i, lanes); });
    else
      rows[row] = extreme_vector<kOp == ReduceOp::kMax>(of_row, n);
  }
  if constexpr (is_sum(kOp))
    folded = fold_rows(
        rows, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
  else
    folded = fold_rows(
        rows, [](auto a, auto b) __attribute__((always_inline)) {
          return kOp == ReduceOp::kMax ? larger_or_nan(a, b) : -larger_or_nan(-a, -b);
        });
  S found[kLanes];
  store<S>(found, folded);
  const bool is_finite = !is_sum(kOp) || !any(folded - folded != S(0));
  for (int row = 0; row < kLanes; ++row)
    totals[row] = is_finite ? found[row] : in_range(found[row], x + row * row_stride, n, 1);
}

// Folds n elements, `stride` apart, of each of kVectors vectors of neighbouring columns, the last of `lanes` columns.
template <ReduceOp kOp, int kVectors, class T>
ROOFLAB_INLINE Sums<SimdOf<T>, kVectors> fold_vectors(const T* x, int64_t n, int64_t stride, int64_t lanes) {
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  Sums<SimdOf<T>, kVectors> columns;
  for (int v = 0; v < kVectors; ++v) columns.of[v] = load_lanes(x + v * kLanes, v < kVectors - 1 ? kLanes : lanes);
  for (int64_t k = 1; k < n; ++k)
    for (int v = 0; v < kVectors; ++v) {
      const SimdOf<T> value = load_lanes(x + k * stride + v * kLanes, v < kVectors - 1 ? kLanes : lanes);
      if (is_sum(kOp))
        columns.of[v] += value;
      else
        columns.of[v] = kOp == ReduceOp::kMax ? max(columns.of[v], value) : min(columns.of[v], value);
    }
  return columns;
}

// kVectors vectors of neighbouring columns, the last of `lanes` columns, each over n elements that are `stride` apart.
template <ReduceOp kOp, int kVectors, class T>
void fold_across(const T* x, int64_t n, int64_t stride, int64_t lanes, double* totals) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  const int64_t rows = sizeof(S) == 8 ? n : kRows, columns = (kVectors - 1) * kLanes + lanes;
  if constexpr (kOp == ReduceOp::kProd) {
    for (int64_t c = 0; c < columns; c += kLanes)
      multiply_across(x + c, n, stride, smaller(columns - c, kLanes), totals + c);
    return;
  }
  for (int64_t begin = 0; begin < n; begin += rows) {
    const int64_t end = smaller(begin + rows, n);
    PairwiseSum<Sums<SimdOf<T>, kVectors>> runs;
    int64_t at = begin;
    if (is_sum(kOp))
      for (; at + kRun < end; at += kRun) runs.add(fold_vectors<kOp, kVectors>(x + at * stride, kRun, stride, lanes));
    const auto sums = runs.total(fold_vectors<kOp, kVectors>(x + at * stride, end - at, stride, lanes));
    S numbers[kVectors * kLanes];
    bool is_finite = true;
    for (int v = 0; v < kVectors; ++v) {
      store<S>(numbers + v * kLanes, sums.of[v]);
      is_finite &= !any(sums.of[v] - sums.of[v] != S(0));
    }
    if (is_sum(kOp) && !is_finite)
      for (int64_t c = 0; c < columns; ++c)
        totals[c] += in_range(numbers[c], x + begin * stride + c, end - begin, stride);
    else
      for (int64_t c = 0; c < columns; ++c) totals[c] = fold<kOp>(totals[c], numbers[c]);
  }
}

template <ReduceOp kOp, int kVectors, class T>
void fold_across(const T* x, int64_t n, int64_t stride, int64_t lanes, Spread* totals) {
  for (int64_t begin = 0; begin < n; begin += kRows)
    spread_across<kVectors>(x + begin * stride, smaller(n - begin, kRows), stride, lanes, totals);
}

// `columns` neighbours in y, each over n elements of x, which are n_stride apart.
template <ReduceOp kOp, class T>
void fold_columns(const T* x, int64_t n, int64_t n_stride, int64_t columns, int64_t column_stride,
                  total_t<kOp, T>* totals) {
  for (int64_t c = 0; c < kColumns; ++c) totals[c] = identity<kOp, total_t<kOp, T>>();
  if (n > kShortLine && column_stride != 1) {
    int64_t c = 0;
    if constexpr (!kIsInteger<T> && kOp != ReduceOp::kProd && kOp != ReduceOp::kVar && !is_truth(kOp)) {
      constexpr int64_t kLanes = SimdOf<T>::kLanes;
      for (; n <= kChunk && n_stride == 1 && c + kLanes <= columns; c += kLanes)
        reduce_rows<kOp>(x + c * column_stride, n, column_stride, totals + c);
    }
    for (; c < columns; ++c) totals[c] = fold_strided<kOp>(x + c * column_stride, n, n_stride);
    return;
  }
  T turned[kShortLine * kColumns];
  if (column_stride != 1) {
    turn_lines(x, columns, column_stride, n, n_stride, turned, kColumns);
    x = turned;
    n_stride = kColumns;
  }
  if constexpr (is_truth(kOp)) {
    bits_t<T> found[kColumns] = {};  // not 0 where an element of any is not 0, and where one of all is
    for (int64_t k = 0; k < n; ++k)
      for (int64_t c = 0; c < columns; ++c) {
        const bits_t<T> bits = truth_of(x + k * n_stride + c);
        found[c] |= kOp == ReduceOp::kAny ? bits : bits == 0;
      }
    for (int64_t c = 0; c < columns; ++c) totals[c] = (kOp == ReduceOp::kAny) == (found[c] != 0);
  } else if constexpr (sizeof(T) == 1 && (kOp == ReduceOp::kMax || kOp == ReduceOp::kMin)) {  // byte by byte
    T bits[kColumns];
    for (int64_t c = 0; c < kColumns; ++c) bits[c] = kOp == ReduceOp::kMin;
    for (int64_t k = 0; k < n; ++k)
      for (int64_t c = 0; c < columns; ++c) {
        const T bit = x[k * n_stride + c];
        bits[c] = kOp == ReduceOp::kMax ? bits[c] | bit : bits[c] & bit;
      }
    for (int64_t c = 0; c < columns; ++c) totals[c] = bits[c];
  } else if constexpr (kIsInteger<T>) {
    for (int64_t k = 0; k < n; ++k)
      for (int64_t c = 0; c < columns; ++c) totals[c] = fold<kOp>(totals[c], static_cast<int64_t>(x[k * n_stride + c]));
  } else {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    int64_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes) fold_across<kOp, 4>(x + c, n, n_stride, kLanes, totals + c);
    for (; c < columns; c += kLanes) fold_across<kOp, 1>(x + c, n, n_stride, smaller(columns - c, kLanes), totals + c);
  }
}

// The first n of kColumns totals.
template <class T>
ROOFLAB_INLINE void write_results(T* y, int64_t n, const double* totals) {
  using S = typename ComputeOf<T>::type;
  constexpr int64_t kLanes = SimdOf<T>::kLanes;
  for (int64_t i = 0; i < n; i += kLanes) {
    S results[kLanes];
    for (int64_t k = 0; k < kLanes; ++k)
      results[k] = sizeof(T) == 2 ? S(round_to_odd(totals[i + k])) : static_cast<S>(totals[i + k]);
    store<T>(y + i, load<S>(results), smaller(n - i, kLanes));
  }
}

template <ReduceOp kOp, class T>
void run(ReduceArgs args, Queue& queue) {
  using A = total_t<kOp, T>;
  if (args.inner == 1) {  // rows that are reduced as a whole are neighbours in y, too
    args.inner = args.outer, args.inner_stride = args.outer_stride;
    args.outer = 1;
  }
  constexpr bool kKeepsType =
      kOp != ReduceOp::kVar && !is_truth(kOp) && !(kIsInteger<T> && (is_sum(kOp) || kOp == ReduceOp::kProd));
  if (kKeepsType && args.reduced == 1 && args.outer == 1 && args.inner_stride == 1)  // each result is its one element
    return queue.parallel(args.inner, kElements, [&](int64_t begin, int64_t end, int) {
      std::memcpy(static_cast<T*>(args.y) + begin, static_cast<const T*>(args.x) + begin,
                  static_cast<size_t>(end - begin) * sizeof(T));
    });
  const bool is_rows = args.inner_stride != 1 && args.reduced > kShortLine;  // which are read whole
  const int64_t columns_of_task = is_rows ? clamp(kElements / args.reduced, 1, kColumns) : kColumns;
  const int64_t groups_of_row = parts_of(args.inner, columns_of_task), groups = args.outer * groups_of_row;
  if (groups == 0) return;
  const int64_t width = smaller(args.inner, columns_of_task);
  const int64_t most = groups < kTasks ? kTasks / groups : 1, worth = args.reduced * width / (2 * kElements);
  const int64_t pieces = worth < 1 ? 1 : worth < most ? worth : most;

  const auto finish = [&](int64_t group, int64_t columns, A* totals) {
    const int64_t at = group / groups_of_row * args.inner + group % groups_of_row * columns_of_task;
    if constexpr (kOp == ReduceOp::kVar) {
      const double left = static_cast<double>(args.reduced) - args.correction, divisor = left < 0 ? 0 : left;
      double results[kColumns];
      for (int64_t c = 0; c < columns; ++c) {
        const double variance = totals[c].squares / divisor;
        results[c] = args.op == ReduceOp::kStd ? __builtin_sqrt(variance) : variance;
      }
      write_results(static_cast<T*>(args.y) + at, columns, results);
    } else if constexpr (is_truth(kOp)) {
      for (int64_t c = 0; c < columns; ++c) static_cast<bool*>(args.y)[at + c] = totals[c] != 0;
    } else if constexpr (!kIsInteger<T>) {
      if (args.op == ReduceOp::kMean)
        for (int64_t c = 0; c < columns; ++c) totals[c] /= static_cast<double>(args.reduced);
      write_results(static_cast<T*>(args.y) + at, columns, totals);
    } else {
      for (int64_t c = 0; c < columns; ++c) {
        if constexpr (is_sum(kOp) || kOp == ReduceOp::kProd)
          static_cast<int64_t*>(args.y)[at + c] = totals[c];
        else
          static_cast<T*>(args.y)[at + c] = static_cast<T>(totals[c]);
      }
    }
  };
  const auto columns_of = [&](int64_t group) {
    return smaller(args.inner - group % groups_of_row * columns_of_task, columns_of_task);
  };

  A partial[kTasks * kColumns];
  const int64_t elements = args.reduced / pieces * width + 1;
  queue.parallel(
      groups * pieces, elements < kElements ? kElements / elements : 1, [&](int64_t first, int64_t last, int) {
        for (int64_t task = first; task < last; ++task) {
          const int64_t group = task / pieces, piece = task % pieces, columns = columns_of(group);
          const int64_t begin = args.reduced * piece / pieces, end = args.reduced * (piece + 1) / pieces;
          const T* x = static_cast<const T*>(args.x) + group / groups_of_row * args.outer_stride +
                       group % groups_of_row * columns_of_task * args.inner_stride + begin * args.reduced_stride;
          A own[kColumns];
          A* totals = pieces == 1 ? own : partial + task * kColumns;
          fold_columns<kOp>(x, end - begin, args.reduced_stride, columns, args.inner_stride, totals);
          if (pieces == 1) finish(group, columns, totals);
        }
      });
  if (pieces == 1) return;
  for (int64_t group = 0; group < groups; ++group) {
    A* totals = partial + group * pieces * kColumns;
    for (int64_t piece = 1; piece < pieces; ++piece)
      for (int64_t c = 0; c < columns_of(group); ++c) totals[c] = fold<kOp>(totals[c], totals[piece * kColumns + c]);
    finish(group, columns_of(group), totals);
  }
}

template <class T>
void run_op(const ReduceArgs& args, Queue& queue) {
  // Any of bools is the largest of them, and all the smallest.
  constexpr ReduceOp kAnyOf = sizeof(T) == 1 ? ReduceOp::kMax : ReduceOp::kAny;
  constexpr ReduceOp kAllOf = sizeof(T) == 1 ? ReduceOp::kMin : ReduceOp::kAll;
  switch (args.op) {
    case ReduceOp::kMax: return run<ReduceOp::kMax, T>(args, queue);
    case ReduceOp::kMin: return run<ReduceOp::kMin, T>(args, queue);
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      if constexpr (!kIsInteger<T>) return run<ReduceOp::kVar, T>(args, queue);
      break;
    case ReduceOp::kProd: return run<ReduceOp::kProd, T>(args, queue);
    case ReduceOp::kAny: return run<kAnyOf, T>(args, queue);
    case ReduceOp::kAll: return run<kAllOf, T>(args, queue);
    case ReduceOp::kSum:
    case ReduceOp::kMean: return run<ReduceOp::kSum, T>(args, queue);
  }
}

}  // namespace

void reduce_cpu_v1_simd(const ReduceArgs& args, Queue& queue) {
  switch (args.dtype) {
    case DType::kInt64: return run_op<int64_t>(args, queue);
    case DType::kInt32: return run_op<int32_t>(args, queue);
    case DType::kBool: return run_op<bool>(args, queue);
    case DType::kFloat64:
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16: return with_floating(args.dtype, [&]<class T>() { run_op<T>(args, queue); });
  }
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
