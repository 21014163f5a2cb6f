// The SIMD rung of cumsum on the CPU: see cumsum.h for what it computes.
#include "kernels/common/columns.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

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

// Lines of n adjacent elements that follow each other, `count` elements in all.
template <class T>
void sum_lines(const T* x, T* y, int64_t n, int64_t count) {
  constexpr int64_t kLanes = F32x16::kLanes, kPart = 512;  // elements converted at a time; they stay in L1
  float numbers[kPart];
  double sums[kPart] = {}, total = 0;
  int64_t left = n;  // elements of the current line
  for (int64_t i = 0; i < count; i += kPart) {
    const int64_t size = smaller(kPart, count - i);
    for (int64_t k = 0; k < size; k += kLanes)
      store<float>(numbers + k, load_lanes(x + i + k, smaller(kLanes, size - k)));
    for (int64_t k = 0; k < size;) {
      const int64_t run = smaller(left, size - k);
      total = add_up(numbers + k, run, total, sums + k);
      k += run;
      left -= run;
      if (left == 0) left = n, total = 0;
    }
    for (int64_t k = 0; k < kPart; ++k) numbers[k] = round_to_odd(sums[k]);
    for (int64_t k = 0; k < size; k += kLanes) store<T>(y + i + k, load<float>(numbers + k), smaller(kLanes, size - k));
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
    for (int64_t c = 0; c < filled; ++c) numbers[c] = round_to_odd(totals[c] += numbers[c]);
    for (int64_t c = 0; c < columns; c += kLanes)
      store<T>(y + c, load<float>(numbers + c), smaller(kLanes, columns - c));
  }
}

}  // namespace

void cumsum_cpu_v2_simd(const CumsumArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    if (args.inner > 1)
      return for_columns(queue, args.outer, args.n, args.inner, [&](int64_t outer, int64_t first, int64_t columns) {
        sum_columns(static_cast<const T*>(args.x) + outer * args.x_outer_stride + first, args.x_stride,
                    static_cast<T*>(args.y) + outer * args.y_outer_stride + first, args.y_stride, args.n, columns);
      });
    queue.parallel(args.outer, row_grain(args.n), [&](int64_t begin, int64_t end, int) {
      sum_lines(static_cast<const T*>(args.x) + begin * args.n, static_cast<T*>(args.y) + begin * args.n, args.n,
                (end - begin) * args.n);
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
