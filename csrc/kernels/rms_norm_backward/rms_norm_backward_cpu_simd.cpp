// The SIMD rung of rms_norm_backward on the CPU: see rms_norm_backward.h for what it computes.
#include "kernels/common/column_sums_simd.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/rms_norm_backward/rms_norm_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Of one row: the mean of (x unit)^2, and the mean of dn x unit.
struct Means {
  float square, product;
};

template <class T, class Gain>
ROOFLAB_INLINE Means means_of(const T* dy, const T* x, int64_t d, float unit, Gain gain) {
  const auto sums = sums_of_row<T, 2>(
      d, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
        const F32x16 value = load_lanes(x + i, lanes) * unit;
        sums.of[0] += value * value;
        sums.of[1] += load_lanes(dy + i, lanes) * gain(i, lanes) * value;
      });
  return {sums.of[0] / float(d), sums.of[1] / float(d)};
}

// The mean of dn n, where n = x unit scale: no term is larger than the largest dn.
template <class T, class Gain>
float mean_along(const T* dy, const T* x, int64_t d, float unit, float scale, Gain gain) {
  const float share = scale / float(d);
  const auto sums = sums_of_row<T, 1>(
      d, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
        sums.of[0] += load_lanes(dy + i, lanes) * gain(i, lanes) * (load_lanes(x + i, lanes) * unit * share);
      });
  return sums.of[0];
}

}  // namespace

void rms_norm_backward_cpu_v1_simd(const RmsNormBackwardArgs& args, Queue& queue) {
  const int64_t d = args.d;
  float* partial = args.dweight && args.n > 0 ? queue.scratch<float>(cpu_blocks(args.n) * d) : nullptr;
  const bool streaming = queue.target().exceeds_cache(args.n * d * size_of(args.dtype));
  with_float_element(args.dtype, [&]<class T>() {
    const T* weight = static_cast<const T*>(args.weight);
    const F32x16 offset = float(args.zero_centered);
    const auto gain = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
      return weight ? load_lanes(weight + i, lanes) + offset : F32x16(1.0f);
    };
    for_each_row_of_blocks(queue, args.n, d, partial, 1, [&](int64_t n, float* sums) {
      const T* dy = static_cast<const T*>(args.dy) + n * args.dy_row_stride;
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      Means mean = means_of(dy, x, d, 1, gain);
      const float unit = row_unit(mean.square + float(args.eps));
      if (unit != 1) mean = means_of(dy, x, d, unit, gain);
      // r = unit scale, n = x r and mean(dn n) = mean(dn x unit) scale. The factors are applied singly, as r may
      // overflow.
      const float scale = 1 / __builtin_sqrtf(mean.square + float(args.eps) * unit * unit);
      const F32x16 along =
          product_leaves_range(mean.product) ? mean_along(dy, x, d, unit, scale, gain) : scale * mean.product;
      write_row(
          static_cast<T*>(args.dx) + n * d, d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            prefetch_next(dy + i, args.dy_row_stride);
            const F32x16 slope = load_lanes(dy + i, lanes), normal = load_lanes(x + i, lanes) * unit * scale;
            if (sums) add_lanes(sums + i, slope * normal, lanes);
            return (slope * gain(i, lanes) - normal * along) * unit * scale;
          });
    });
    if (args.dweight) add_blocks(queue, partial, args.n, d, 0, d, static_cast<T*>(args.dweight));
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
