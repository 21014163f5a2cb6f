// The SIMD rung of cumsum on the CPU: see cumsum.h for what it computes.
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

}  // namespace

void cumsum_cpu_v2_simd(const CumsumArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    queue.parallel(args.outer, row_grain(args.n), [&](int64_t begin, int64_t end, int) {
      sum_lines(static_cast<const T*>(args.x) + begin * args.n, static_cast<T*>(args.y) + begin * args.n, args.n,
                (end - begin) * args.n);
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
