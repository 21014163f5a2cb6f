// The SIMD rung of rms_norm on the CPU: see rms_norm.h for what it computes, and rms_norm_ladder.cpp for what was
// measured.
#include "kernels/rms_norm/rms_norm_simd.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void rms_norm_cpu_v1_simd(const RmsNormArgs& args, Queue& queue) {
  if (args.d == 0) return;
  const bool streaming = queue.target().exceeds_cache(args.n * args.d * size_of(args.dtype));
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    const T* weight = static_cast<const T*>(args.weight);
    const SimdOf<T> offset = S(args.zero_centered);
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const RmsScale<T> scaled = rms_scale(x, args.d, args.eps);
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            const SimdOf<T> value = scaled(load_lanes(x + i, lanes));
            return weight ? value * (load_lanes(weight + i, lanes) + offset) : value;
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
