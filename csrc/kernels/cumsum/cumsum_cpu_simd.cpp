// The SIMD rung of cumsum on the CPU: see cumsum.h for what it computes.
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/cumsum/cumsum.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Numbers are added one by one, four by themselves first, but converted by vectors.
template <class T>
void sum_line(const T* x, T* y, int64_t n) {
  constexpr int64_t kLanes = F32x16::kLanes;
  double total = 0;
  for (int64_t i = 0; i < n; i += kLanes) {
    const int64_t lanes = smaller(kLanes, n - i);
    float numbers[kLanes];
    double sums[kLanes] = {};
    store<float>(numbers, load_lanes(x + i, lanes));
    for (int64_t k = 0; k < lanes; k += 4) {
      sums[k] = numbers[k];
      for (int64_t j = k + 1; j < k + 4; ++j) sums[j] = sums[j - 1] + numbers[j];
      for (int64_t j = k; j < k + 4; ++j) sums[j] += total;
      total = sums[k + 3];
    }
    for (int64_t k = 0; k < kLanes; ++k) numbers[k] = round_to_odd(sums[k]);
    store<T>(y + i, load<float>(numbers), lanes);
  }
}

}  // namespace

void cumsum_cpu_v2_simd(const CumsumArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    for_each_row(queue, args.outer, args.n, [&](int64_t outer) {
      sum_line(static_cast<const T*>(args.x) + outer * args.x_outer_stride,
               static_cast<T*>(args.y) + outer * args.y_outer_stride, args.n);
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
