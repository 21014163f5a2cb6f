// The SIMD rung of layer_norm on the CPU: see layer_norm.h for what it computes and what was measured.
#include "kernels/common/row_simd.h"
#include "kernels/common/row_unit.h"
#include "kernels/layer_norm/layer_norm.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void layer_norm_cpu_v1_simd(const LayerNormArgs& args, Queue& queue) {
  if (args.d == 0) return;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    const T* weight = static_cast<const T*>(args.weight);
    const T* bias = static_cast<const T*>(args.bias);
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      // Mean and variance are those of x times unit.
      const auto mean_of = [&](S unit) __attribute__((always_inline)) {
        return sum_row<T>(
                   args.d, [&](int64_t i, int64_t lanes)
                               __attribute__((always_inline)) { return load_lanes(x + i, lanes) * unit; }) /
               S(args.d);
      };
      const auto variance_of = [&](S unit, SimdOf<T> mean) __attribute__((always_inline)) {
        return sum_row<T>(
                   args.d,
                   [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
                     const SimdOf<T> distance = load_lanes(x + i, lanes) * unit - mean;
                     return first_lanes(distance * distance, lanes);
                   }) /
               S(args.d);
      };
      S mean_number = mean_of(1), variance = variance_of(1, mean_number);
      const S unit = row_unit(variance + S(args.eps), mean_number);
      if (unit != 1) {
        mean_number = mean_of(unit);
        variance = variance_of(unit, mean_number);
      }
      const SimdOf<T> mean = mean_number, scale = S(1) / __builtin_sqrt(variance + S(args.eps) * unit * unit);
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            SimdOf<T> value = (load_lanes(x + i, lanes) * unit - mean) * scale;
            if (weight) value *= load_lanes(weight + i, lanes);
            return bias ? value + load_lanes(bias + i, lanes) : value;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
