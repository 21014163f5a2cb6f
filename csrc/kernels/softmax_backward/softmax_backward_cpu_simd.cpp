// The SIMD rung of softmax_backward on the CPU: see softmax_backward.h for what it computes.
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/softmax_backward/softmax_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Rows too short to fill a vector: a vector holds one element of each of kRows rows.
template <class T>
void short_rows(const SoftmaxBackwardArgs& args, Queue& queue) {
  constexpr int64_t kRows = F32x16::kLanes;
  for_each_row(queue, (args.n + kRows - 1) / kRows, kRows * args.d, [&](int64_t block) {
    const int64_t first = block * kRows, rows = smaller(kRows, args.n - first);
    T turned[2][kSoftmaxBackwardCpuShort * kRows];
    const auto turn = [&](const void* from, int64_t stride, T* to) {
      const T* x = static_cast<const T*>(from) + first * stride;
      if (args.d == 1 && stride == 1) return x;
      turn_lines(x, rows, stride, args.d, 1, to, kRows);
      return static_cast<const T*>(to);
    };
    const T* dy = turn(args.dy, args.dy_row_stride, turned[0]);
    const T* y = turn(args.y, args.y_row_stride, turned[1]);
    PairwiseSum<F32x16> sums;
    for (int64_t k = 0; k < args.d; ++k) {
      const F32x16 slope = load_lanes(dy + k * kRows, rows);
      sums.add(args.logarithm ? slope : slope * load_lanes(y + k * kRows, rows));
    }
    const F32x16 total = sums.total(F32x16(0.0f));
    T* dx = static_cast<T*>(args.dx) + first * args.d;
    for (int64_t k = 0; k < args.d; ++k) {
      const F32x16 slope = load_lanes(dy + k * kRows, rows), value = load_lanes(y + k * kRows, rows);
      const F32x16 result = args.logarithm ? slope - exp(value) * total : value * (slope - total);
      if (args.d == 1) return store<T>(dx, result, rows);
      T results[kRows];
      store<T>(results, result);
      for (int64_t row = 0; row < rows; ++row) dx[row * args.d + k] = results[row];
    }
  });
}

}  // namespace

void softmax_backward_cpu_v1_simd(const SoftmaxBackwardArgs& args, Queue& queue) {
  if (args.d == 0) return;
  if (args.d <= kSoftmaxBackwardCpuShort)
    return with_float_element(args.dtype, [&]<class T>() { short_rows<T>(args, queue); });
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_float_element(args.dtype, [&]<class T>() {
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* dy = static_cast<const T*>(args.dy) + n * args.dy_row_stride;
      const T* y = static_cast<const T*>(args.y) + n * args.y_row_stride;
      T* dx = static_cast<T*>(args.dx) + n * args.d;
      if (args.logarithm) {
        const F32x16 total = sum_row<T>(
            args.d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(dy + i, lanes); });
        return write_row(
            dx, args.d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
              prefetch_next(y + i, args.y_row_stride);
              prefetch_next(dy + i, args.dy_row_stride);
              return load_lanes(dy + i, lanes) - exp(load_lanes(y + i, lanes)) * total;
            });
      }
      const F32x16 total = sum_row<T>(
          args.d, [&](int64_t i, int64_t lanes)
                      __attribute__((always_inline)) { return load_lanes(dy + i, lanes) * load_lanes(y + i, lanes); });
      write_row(
          dx, args.d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(y + i, args.y_row_stride);
            prefetch_next(dy + i, args.dy_row_stride);
            return load_lanes(y + i, lanes) * (load_lanes(dy + i, lanes) - total);
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
