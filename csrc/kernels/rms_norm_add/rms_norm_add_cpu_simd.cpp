// The SIMD rung of rms_norm_add on the CPU: see rms_norm_add.h for what it computes.
#include "kernels/rms_norm/rms_norm_simd.h"
#include "kernels/rms_norm_add/rms_norm_add.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void rms_norm_add_cpu_v1_simd(const RmsNormAddArgs& args, Queue& queue) {
  with_floating(args.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    const T *weight = static_cast<const T*>(args.weight), *next = static_cast<const T*>(args.next_weight);
    const SimdOf<T> offset = S(args.zero_centered);
    for_each_row(queue, args.n, args.d, [&](int64_t n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const T* residual = static_cast<const T*>(args.residual) + n * args.residual_row_stride;
      T* h = static_cast<T*>(args.h) + n * args.d;
      const RmsScale<T> scaled = rms_scale(x, args.d, args.eps);
      write_row(
          h, args.d, false, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            const SimdOf<T> gain = load_lanes(weight + i, lanes) + offset;
            return load_lanes(residual + i, lanes) + scaled(load_lanes(x + i, lanes)) * gain;
          });
      if (!next) return;
      const RmsScale<T> next_scaled = rms_scale<T>(h, args.d, args.eps);
      write_row(
          static_cast<T*>(args.y) + n * args.d, args.d,
          false, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            return next_scaled(load_lanes<T>(h + i, lanes)) * (load_lanes(next + i, lanes) + offset);
          });
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
