// The SIMD rungs of softmax on the CPU: see softmax.h for what they compute, and softmax_ladder.cpp for what was
// measured.
#include <cmath>

#include "kernels/common/max_sum_simd.h"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// A row whose exponentials are known. Its results are written during other work.
template <class T>
class PendingRow {
 public:
  using S = typename ComputeOf<T>::type;
  ROOFLAB_INLINE PendingRow(int64_t d, bool streaming) : d_(d), at_(d), streaming_(streaming) {}

  ROOFLAB_INLINE void begin(T* y, const S* exponentials, S scale) {
    y_ = y, exponentials_ = exponentials, scale_ = scale, at_ = 0;
    const int64_t gap = streaming_ ? elements_to_line(y) : 0;
    if (gap > 0) piece(gap < d_ ? gap : d_);
  }
  // Writes whole lines up to element `end`.
  ROOFLAB_INLINE void advance(int64_t end) {
    for (; at_ + kLine<T> <= end; at_ += kLine<T>)
      write_line(
          y_ + at_, streaming_, [&](int64_t i) __attribute__((always_inline)) {
            return load<S>(exponentials_ + at_ + i) * scale_;
          });
  }
  ROOFLAB_INLINE void finish() {
    advance(d_);
    piece(d_);
  }

 private:
  ROOFLAB_INLINE void piece(int64_t end) {
    for (; at_ < end; at_ += SimdOf<T>::kLanes) {
      const int64_t n = end - at_ < SimdOf<T>::kLanes ? end - at_ : SimdOf<T>::kLanes;
      store<T>(y_ + at_, load<S>(exponentials_ + at_, n) * scale_, n);
    }
    at_ = end;
  }

  int64_t d_, at_;
  bool streaming_;
  T* y_ = nullptr;
  const S* exponentials_ = nullptr;
  S scale_ = 0;
};

// Rows too short to fill a vector, side by side: a vector holds one element of each row.
void short_rows(const SoftmaxArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    constexpr int64_t kRows = SimdOf<T>::kLanes;
    for_each_row(queue, parts_of(args.n, kRows), kRows * args.d, [&](int64_t block) {
      const int64_t first = block * kRows, rows = smaller(kRows, args.n - first);
      const T* x = static_cast<const T*>(args.x) + first * args.x_row_stride;
      T* y = static_cast<T*>(args.y) + first * args.d;
      T turned[kSoftmaxCpuShort * kRows];
      SimdOf<T> values[kSoftmaxCpuShort], maximum = -S(__builtin_inf());  // of each row
      if (args.d > 1 || args.x_row_stride != 1) {
        turn_lines(x, rows, args.x_row_stride, args.d, 1, turned, kRows);
        x = turned;
      }
      for (int64_t k = 0; k < args.d; ++k) {
        values[k] = load_lanes(x + k * kRows, rows);
        maximum = select(values[k] > maximum, values[k], maximum);  // a NaN shows up in the sum
      }
      PairwiseSum<SimdOf<T>> sums;
      for (int64_t k = 0; k < args.d; ++k) {
        values[k] = values[k] - maximum;
        const SimdOf<T> exponential = exp(values[k]);
        sums.add(exponential);
        if (!args.logarithm) values[k] = exponential;
      }
      const SimdOf<T> sum = sums.total(S(0)), scale = S(1) / sum, rest = args.logarithm ? log(sum) : sum;
      for (int64_t k = 0; k < args.d; ++k) {
        if (args.d == 1) return store<T>(y, args.logarithm ? values[k] - rest : values[k] * scale, rows);
        store<T>(turned + k * kRows, args.logarithm ? values[k] - rest : values[k] * scale);
        for (int64_t row = 0; row < rows; ++row) y[row * args.d + k] = turned[k * kRows + row];
      }
    });
  });
}

}  // namespace

void softmax_cpu_v1_online(const SoftmaxArgs& args, Queue& queue) {
  if (args.d == 0) return;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      T* y = static_cast<T*>(args.y) + n * args.d;
      const MaxSum<S> row = max_sum_row(x, args.d);
      if (args.logarithm) {
        const S rest = std::log(row.sum);
        return write_row(
            y, args.d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
              return load_lanes(x + i, lanes) - row.maximum - rest;
            });
      }
      const SimdOf<T> scale = S(1) / row.sum;
      write_row(
          y, args.d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            return exp(load_lanes(x + i, lanes) - row.maximum) * scale;
          });
    });
  });
}

void softmax_cpu_v2_one_pass(const SoftmaxArgs& args, Queue& queue) {
  if (args.d == 0) return;
  if (args.d <= kSoftmaxCpuShort) return short_rows(args, queue);
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    queue.parallel(args.n, row_grain(args.d), [&](int64_t first, int64_t last, int) {
      alignas(64) S exponentials[2][kSoftmaxCpuScratch / sizeof(S)];
      PendingRow<T> pending(args.d, streaming);
      for (int64_t n = first; n < last; ++n) {
        const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
        S* kept = exponentials[n % 2];
        const S maximum = extreme_row<true, false>(x, args.d);  // a NaN shows up in the sum
        const S sum = sum_exponentials(
            x, args.d, maximum, [&](int64_t i, int64_t lanes, SimdOf<T> exponential) __attribute__((always_inline)) {
              prefetch_next(x + i, args.x_row_stride);
              if (lanes == SimdOf<T>::kLanes)
                store<S>(kept + i, exponential);
              else
                store<S>(kept + i, exponential, lanes);
              pending.advance(i);
            });
        pending.finish();
        pending.begin(static_cast<T*>(args.y) + n * args.d, kept, S(1) / sum);
      }
      pending.finish();
      fence();
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
