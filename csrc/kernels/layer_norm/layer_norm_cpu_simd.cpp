// The SIMD rung of layer_norm on the CPU: see layer_norm.h for what it computes, and layer_norm_ladder.cpp for what was
// measured.
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/layer_norm/layer_norm_simd.h"

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
      const Centred<T> row = centred_in_range(x, args.d, args.eps);
      const SimdOf<T> scale = inverse_deviation(row.variance, S(args.eps), row.unit);
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            SimdOf<T> value = row(load_lanes(x + i, lanes)) * scale;
            if (weight) value *= load_lanes(weight + i, lanes);
            return bias ? value + load_lanes(bias + i, lanes) : value;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
