// The SIMD rung of rms_norm on the CPU: see rms_norm.h for what it computes and what was measured.
#include "kernels/common/row_simd.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void rms_norm_cpu_v1_simd(const RmsNormArgs& args, Queue& queue) {
  if (args.d == 0) return;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    const T* weight = static_cast<const T*>(args.weight);
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const auto mean_square = [&](S unit) __attribute__((always_inline)) {
        return sum_row<T>(
                   args.d,
                   [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
                     const SimdOf<T> value = load_lanes(x + i, lanes) * unit;
                     return value * value;
                   }) /
               S(args.d);
      };
      S mean = mean_square(1), unit = 1;
      if (mean == S(__builtin_inf()) && sizeof(S) == 4) {  // squares from 2^128 on: of numbers made smaller
        unit = S(kSmallUnit);
        mean = mean_square(unit);
      }
      const SimdOf<T> scale = unit / __builtin_sqrt(mean + S(args.eps) * unit * unit);
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            const SimdOf<T> value = load_lanes(x + i, lanes) * scale;
            return weight ? value * load_lanes(weight + i, lanes) : value;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
