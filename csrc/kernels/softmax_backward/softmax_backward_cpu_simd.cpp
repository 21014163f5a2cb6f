// The SIMD rung of softmax_backward on the CPU: see softmax_backward.h for what it computes.
#include "kernels/common/columns.h"
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

// Neighbouring columns, kVectors vectors of them, of which the last counts `lanes`: a lane is a column.
template <class T, int kVectors>
ROOFLAB_INLINE void gradient_of_columns(const SoftmaxBackwardArgs& args, const T* dy, const T* y, T* dx,
                                        int64_t lanes) {
  using Vectors = Sums<F32x16, kVectors>;
  constexpr int64_t kLanes = F32x16::kLanes;
  const auto slope = [&](int64_t k, int v) __attribute__((always_inline)) {
    return load_lanes(dy + k * args.dy_step + v * kLanes, lanes);
  };
  const auto value = [&](int64_t k, int v) __attribute__((always_inline)) {
    return load_lanes(y + k * args.y_step + v * kLanes, lanes);
  };
  PairwiseSum<Vectors> runs;
  Vectors run, none;
  for (int v = 0; v < kVectors; ++v) run.of[v] = none.of[v] = 0.0f;
  for (int64_t k = 0; k < args.d; ++k) {
    for (int v = 0; v < kVectors; ++v)
      run.of[v] = run.of[v] + (args.logarithm ? slope(k, v) : slope(k, v) * value(k, v));
    if (k % kRun < kRun - 1) continue;
    runs.add(run);
    run = none;
  }
  const Vectors total = runs.total(run);
  for (int64_t k = 0; k < args.d; ++k)
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 result =
          args.logarithm ? slope(k, v) - exp(value(k, v)) * total.of[v] : value(k, v) * (slope(k, v) - total.of[v]);
      T* to = dx + k * args.inner + v * kLanes;
      lanes == kLanes ? store<T>(to, result) : store<T>(to, result, lanes);
    }
}

}  // namespace

void softmax_backward_cpu_v4_columns(const SoftmaxBackwardArgs& args, Queue& queue) {
  with_float_element(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = F32x16::kLanes;
    for_columns(queue, args.n / args.inner, args.d, args.inner, [&](int64_t outer, int64_t first, int64_t count) {
      const T* dy = static_cast<const T*>(args.dy) + outer * args.dy_outer_stride + first;
      const T* y = static_cast<const T*>(args.y) + outer * args.y_outer_stride + first;
      T* dx = static_cast<T*>(args.dx) + outer * args.d * args.inner + first;
      if (count == kColumns) return gradient_of_columns<T, kColumns / kLanes>(args, dy, y, dx, kLanes);
      for (int64_t c = 0; c < count; c += kLanes)
        gradient_of_columns<T, 1>(args, dy + c, y + c, dx + c, smaller(kLanes, count - c));
    });
  });
}

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
