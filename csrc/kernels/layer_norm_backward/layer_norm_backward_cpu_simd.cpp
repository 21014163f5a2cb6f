// The SIMD rung of layer_norm_backward on the CPU: see layer_norm_backward.h for what it computes.
#include "kernels/common/column_sums_simd.h"
#include "kernels/common/float_element_simd.h"
#include "kernels/layer_norm_backward/layer_norm_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {
namespace {

// Two means over a row.
struct Means {
  float a, b;
};

// `add(i, lanes, a, b)` adds to a and b the contribution of the vector that starts at i.
template <class Add>
ROOFLAB_INLINE Means means_of_row(int64_t d, Add add) {
  constexpr int64_t kLanes = F32x16::kLanes;
  F32x16 a[2] = {0, 0}, b[2] = {0, 0};
  int64_t i = 0;
  for (; i + 2 * kLanes <= d; i += 2 * kLanes)
    for (int chain = 0; chain < 2; ++chain) add(i + chain * kLanes, kLanes, a[chain], b[chain]);
  for (; i < d; i += kLanes) add(i, d - i < kLanes ? d - i : kLanes, a[0], b[0]);
  return {sum(a[0] + a[1]) / float(d), sum(b[0] + b[1]) / float(d)};
}

// What a row's gradient needs to know about the whole row: c = x unit - mean, n = c scale and, with r = unit scale,
// dx = r (dn - slope - n along).
struct RowStatistics {
  float mean, variance, scale, slope, along;
};

template <class T, class Gained>
ROOFLAB_INLINE RowStatistics statistics_of(const T* x, int64_t d, float eps, float unit, Gained gained) {
  const Means first = means_of_row(
      d, [&](int64_t i, int64_t lanes, F32x16 & a, F32x16 & b) __attribute__((always_inline)) {
        a += load_lanes(x + i, lanes) * unit;
        b += gained(i, lanes);
      });
  const Means second = means_of_row(
      d, [&](int64_t i, int64_t lanes, F32x16 & a, F32x16 & b) __attribute__((always_inline)) {
        const F32x16 distance = first_lanes(load_lanes(x + i, lanes) * unit - first.a, lanes);
        a += distance * distance;
        b += gained(i, lanes) * distance;
      });
  const float scale = 1 / __builtin_sqrtf(second.a + eps * unit * unit);
  return {first.a, second.a, scale, first.b, second.b * scale};
}

}  // namespace

void layer_norm_backward_cpu_v1_simd(const LayerNormBackwardArgs& args, Queue& queue) {
  const int64_t d = args.d;
  const int sums_of_row = args.has_dweight + args.has_dbias;
  const int64_t width = sums_of_row * d, dbias_at = args.has_dweight ? d : 0;
  float* partial = width > 0 && args.n > 0 ? queue.scratch<float>(cpu_blocks(args.n) * width) : nullptr;
  const bool streaming = queue.target().exceeds_cache(args.n * d * size_of(args.dtype));
  with_float_element(args.dtype, [&]<class T>() {
    const T* weight = static_cast<const T*>(args.weight);
    for_each_row_of_blocks(queue, args.n, d, partial, sums_of_row, [&](int64_t n, float* sums) {
      const T* dy = static_cast<const T*>(args.dy) + n * args.dy_row_stride;
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const auto gained = [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
        const F32x16 slope = load_lanes(dy + i, lanes);
        return weight ? slope * load_lanes(weight + i, lanes) : slope;
      };
      RowStatistics row = statistics_of(x, d, float(args.eps), 1, gained);
      const float unit = row_unit(row.variance + float(args.eps), row.mean);
      if (unit != 1) row = statistics_of(x, d, float(args.eps), unit, gained);
      float* dweight = sums && args.has_dweight ? sums : nullptr;
      float* dbias = sums && args.has_dbias ? sums + dbias_at : nullptr;
      write_row(
          static_cast<T*>(args.dx) + n * d, d, streaming, [&](int64_t i, int64_t lanes) __attribute__((always_inline)) {
            prefetch_next(x + i, args.x_row_stride);
            prefetch_next(dy + i, args.dy_row_stride);
            const F32x16 normal = (load_lanes(x + i, lanes) * unit - row.mean) * row.scale;
            if (dweight) add_lanes(dweight + i, load_lanes(dy + i, lanes) * normal, lanes);
            if (dbias) add_lanes(dbias + i, load_lanes(dy + i, lanes), lanes);
            return (gained(i, lanes) - row.slope - normal * row.along) * unit * row.scale;
          });
    });
    if (args.has_dweight) add_blocks(queue, partial, args.n, d, 0, width, static_cast<T*>(args.dweight));
    if (args.has_dbias) add_blocks(queue, partial, args.n, d, dbias_at, width, static_cast<T*>(args.dbias));
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
