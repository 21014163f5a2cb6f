// The SIMD rung of softmax_backward on the CPU: see softmax_backward.h for what it computes.
#include "kernels/common/float_element_simd.h"
#include "kernels/common/row_simd.h"
#include "kernels/softmax_backward/softmax_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void softmax_backward_cpu_v1_simd(const SoftmaxBackwardArgs& args, Queue& queue) {
  if (args.d == 0) return;
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
