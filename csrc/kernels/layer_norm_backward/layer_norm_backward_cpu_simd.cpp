// The SIMD rung of layer_norm_backward on the CPU: see layer_norm_backward.h for what it computes.
#include "kernels/common/column_sums_simd.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/layer_norm/layer_norm_simd.h"
#include "kernels/layer_norm_backward/layer_norm_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void layer_norm_backward_cpu_v1_simd(const LayerNormBackwardArgs& args, Queue& queue) {
  const int64_t d = args.d;
  const int64_t width = args.sums() * d, dbias_at = args.has_dweight ? d : 0;
  float* partial = width > 0 && args.n > 0 ? queue.scratch<float>(cpu_blocks(args.n) * width) : nullptr;
  const bool streaming = queue.target().exceeds_cache(args.n * d * size_of(args.dtype));
  with_float_element(args.dtype, [&]<class T>() {
    const T* weight = static_cast<const T*>(args.weight);
    for_each_row_of_blocks(queue, args.n, d, partial, args.sums(), [&](int64_t n, float* sums) {
      const T* dy = static_cast<const T*>(args.dy) + n * args.dy_row_stride;
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const auto gained = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        const F32x16 own = load_lanes(dy + i, lanes);
        return weight ? own * load_lanes(weight + i, lanes) : own;
      };
      // c = row(x), n = c scale and, with r = unit scale, dx = r (dn - slope - n along).
      const Centred<T> row = centred_in_range(x, d, args.eps);
      const auto means = sums_of_row<T, 2>(
          d, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
            const F32x16 dn = gained(i, lanes);  // 0 beyond the end
            sums.of[0] += dn;
            sums.of[1] += dn * row(load_lanes(x + i, lanes));
          });
      const float scale = inverse_deviation(row.variance, float(args.eps), row.unit);
      float slope = means.of[0] / float(d), along = means.of[1] / float(d) * scale;
      if (product_leaves_range(means.of[1]) || !(__builtin_fabsf(slope) < __builtin_inff())) {
        const float share = 1 / float(d);  // each term is part of a mean, and none is larger than the largest dn
        const auto parts = sums_of_row<T, 2>(
            d, [&](int64_t i, int64_t lanes, auto& sums) __attribute__((always_inline)) {
              const F32x16 part = gained(i, lanes) * share;
              sums.of[0] += part;
              sums.of[1] += first_lanes(part * (row(load_lanes(x + i, lanes)) * scale), lanes);
            });
        slope = parts.of[0], along = parts.of[1];
      }
      float* dweight = sums && args.has_dweight ? sums : nullptr;
      float* dbias = sums && args.has_dbias ? sums + dbias_at : nullptr;
      write_row(
          static_cast<T*>(args.dx) + n * d, d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            prefetch_next(dy + i, args.dy_row_stride);
            const F32x16 normal = row(load_lanes(x + i, lanes)) * scale;
            if (dweight) add_lanes(dweight + i, load_lanes(dy + i, lanes) * normal, lanes);
            if (dbias) add_lanes(dbias + i, load_lanes(dy + i, lanes), lanes);
            return (gained(i, lanes) - slope - normal * along) * row.unit * scale;
          });
    });
    if (args.has_dweight) add_blocks(queue, partial, args.n, d, 0, width, static_cast<T*>(args.dweight));
    if (args.has_dbias) add_blocks(queue, partial, args.n, d, dbias_at, width, static_cast<T*>(args.dbias));
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
