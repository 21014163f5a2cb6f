// The SIMD rung of layer_norm on the CPU: see layer_norm.h for what it computes and what was measured.
#include "kernels/common/row_simd.h"
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
      const S sum = sum_row<T>(
          args.d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) { return load_lanes(x + i, lanes); });
      const SimdOf<T> mean = sum / S(args.d);
      const S squares = sum_row<T>(
          args.d, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            const SimdOf<T> distance = load_lanes(x + i, lanes) - mean;
            return first_lanes(distance * distance, lanes);
          });
      const SimdOf<T> scale = S(1) / __builtin_sqrt(squares / S(args.d) + S(args.eps));
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            SimdOf<T> value = (load_lanes(x + i, lanes) - mean) * scale;
            if (weight) value *= load_lanes(weight + i, lanes);
            return bias ? value + load_lanes(bias + i, lanes) : value;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
