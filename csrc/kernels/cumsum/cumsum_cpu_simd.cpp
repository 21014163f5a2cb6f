// The SIMD rung of cumsum on the CPU: see cumsum.h for what it computes.
#include "kernels/common/columns.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

constexpr int kFew = kCumsumFewLines;
constexpr int kShort = 16;  // lines of up to so many elements are unrolled

// Running sums that begin at `total`; returns the last. Four numbers are added up by themselves first.
ROOFLAB_INLINE double add_up(const float* x, int64_t n, double total, double* sums) {
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    const double first = x[k], second = first + x[k + 1], third = second + x[k + 2], fourth = third + x[k + 3];
    sums[k] = total + first;
    sums[k + 1] = total + second;
    sums[k + 2] = total + third;
    sums[k + 3] = total += fourth;
  }
  for (; k < n; ++k) sums[k] = total += x[k];
  return total;
}

template <class T>
float rounded(double sum) {
  if constexpr (sizeof(T) == 4)
    return static_cast<float>(sum);
  else
    return round_to_odd(sum);
}

inline void reverse(float* x, int64_t n) {
  for (int64_t k = 0; k < n / 2; ++k) {
    const float first = x[k];
    x[k] = x[n - 1 - k];
    x[n - 1 - k] = first;
  }
}

// Walks `count` adjacent elements, from the last one if `backwards`, in parts that stay in L1 and hold whole units.
// scan(numbers, size, sums) makes the sums of a part.
template <class T, class Scan>
void sum_parts(const T* x, T* y, int64_t count, int64_t unit, bool backwards, Scan scan) {
  constexpr int64_t kLanes = F32x16::kLanes, kPart = 512;
  const int64_t part = kPart / unit * unit;
  float numbers[kPart];
  double sums[kPart] = {};
  for (int64_t done = 0; done < count; done += part) {
    const int64_t size = smaller(part, count - done), at = backwards ? count - done - size : done;
    for (int64_t k = 0; k < size; k += kLanes)
      store<float>(numbers + k, load_lanes(x + at + k, smaller(kLanes, size - k)));
    if (backwards) reverse(numbers, size);
    scan(numbers, size, sums);
    for (int64_t k = 0; k < kPart; ++k) numbers[k] = rounded<T>(sums[k]);
    if (backwards) reverse(numbers, size);
    for (int64_t k = 0; k < size; k += kLanes)
      store<T>(y + at + k, load<float>(numbers + k), smaller(kLanes, size - k));
  }
}

// Calls f.operator()<n>(), so that the compiler knows n, which is at most kMost.
template <int kMost, class F>
ROOFLAB_INLINE void with_few(int64_t n, F f) {
  if constexpr (kMost > 1)
    if (n < kMost) return with_few<kMost - 1>(n, f);
  f.template operator()<kMost>();
}

// Lines that follow each other, `inner` of them interleaved: one, or fewer than kFew.
template <class T>
void sum_lines(const T* x, T* y, int64_t n, int64_t inner, int64_t count, bool backwards) {
  if (inner == 1 && n <= kShort) {  // a part holds whole lines
    with_few<kShort>(n, [&]<int kLength>() {
      sum_parts(x, y, count, kLength, backwards, [](const float* numbers, int64_t size, double* sums) {
        for (int64_t k = 0; k < size; k += kLength) {
          double total = 0;
          for (int c = 0; c < kLength; ++c) sums[k + c] = total += numbers[k + c];
        }
      });
    });
  } else {
    with_few<kFew - 1>(inner, [&]<int kInner>() {
      double totals[kInner] = {};
      int64_t left = n * kInner;  // elements of the current lines
      sum_parts(x, y, count, kInner, backwards, [&](const float* numbers, int64_t size, double* sums) {
        for (int64_t k = 0; k < size;) {
          const int64_t run = smaller(left, size - k);
          if constexpr (kInner == 1) {
            totals[0] = add_up(numbers + k, run, totals[0], sums + k);
          } else {
            for (int64_t i = k; i < k + run; i += kInner)
              for (int c = 0; c < kInner; ++c) sums[i + c] = totals[c] += numbers[i + c];
          }
          k += run;
          left -= run;
          if (left) continue;
          left = n * kInner;
          for (double& total : totals) total = 0;
        }
      });
    });
  }
}

// `columns` lines side by side.
template <class T>
void sum_columns(const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t n, int64_t columns) {
  constexpr int64_t kLanes = F32x16::kLanes;
  static_assert(kColumns % kLanes == 0);
  float numbers[kColumns] = {};
  double totals[kColumns] = {};
  const int64_t filled = (columns + kLanes - 1) / kLanes * kLanes;
  for (int64_t k = 0; k < n; ++k, x += x_stride, y += y_stride) {
    for (int64_t c = 0; c < columns; c += kLanes)
      store<float>(numbers + c, load_lanes(x + c, smaller(kLanes, columns - c)));
    for (int64_t c = 0; c < filled; ++c) numbers[c] = rounded<T>(totals[c] += numbers[c]);
    for (int64_t c = 0; c < columns; c += kLanes)
      store<T>(y + c, load<float>(numbers + c), smaller(kLanes, columns - c));
  }
}

}  // namespace

void cumsum_cpu_v2_simd(const CumsumArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    if (args.inner >= kFew)
      return for_columns(queue, args.outer, args.n, args.inner, [&](int64_t outer, int64_t first, int64_t columns) {
        sum_columns(static_cast<const T*>(args.x) + outer * args.x_outer_stride + first, args.x_stride,
                    static_cast<T*>(args.y) + outer * args.y_outer_stride + first, args.y_stride, args.n, columns);
      });
    const bool backwards = args.x_stride < 0;
    const int64_t size = args.n * args.inner, first = backwards ? args.inner - size : 0;
    queue.parallel(args.outer, row_grain(size), [&](int64_t begin, int64_t end, int) {
      sum_lines(static_cast<const T*>(args.x) + begin * size + first, static_cast<T*>(args.y) + begin * size + first,
                args.n, args.inner, (end - begin) * size, backwards);
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
