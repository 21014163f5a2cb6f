// The SIMD rung of rms_norm_rope on the CPU: see rms_norm_rope.h for what it computes.
#include "kernels/rms_norm/rms_norm_simd.h"
#include "kernels/rms_norm_rope/rms_norm_rope.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void rms_norm_rope_cpu_v1_simd(const RmsNormRopeArgs& args, Queue& queue) {
  const RopeArgs& rope = args.rope;
  const int64_t half = rope.head_size / 2;
  with_floating(rope.dtype, [&]<class T>() {
    using S = typename ComputeOf<T>::type;
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    const T* weight = static_cast<const T*>(args.weight);
    const SimdOf<T> offset = S(args.zero_centered);
    for_each_row(queue, rope.batch * rope.heads * rope.length, rope.head_size, [&](int64_t n) {
      const RopeRow<T> row(rope, n);
      const RmsScale<T> scaled = rms_scale(row.x, rope.head_size, args.eps);
      for (int64_t i = 0; i < half; i += kLanes) {
        const int64_t lanes = half - i < kLanes ? half - i : kLanes;
        const auto at = [&](const T* p) __attribute__((always_inline)) { return load_lanes(p + i, lanes); };
        const SimdOf<T> a = scaled(at(row.x)) * (at(weight) + offset);
        const SimdOf<T> b = scaled(at(row.x + half)) * (at(weight + half) + offset);
        const auto [first, second] =
            rope_point(a, b, at(row.cos), at(row.cos + half), at(row.sin), at(row.sin + half), false);
        store(row.y + i, first, lanes);
        store(row.y + half + i, second, lanes);
      }
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
