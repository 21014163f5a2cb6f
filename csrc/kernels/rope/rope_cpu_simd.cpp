// The SIMD rung of rope on the CPU: see rope.h for what it computes.
#include "kernels/common/row_simd.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void rope_cpu_v1_simd(const RopeArgs& args, Queue& queue) {
  const int64_t half = args.head_size / 2;
  with_floating(args.dtype, [&]<class T>() {
    constexpr int64_t kLanes = SimdOf<T>::kLanes;
    for_each_row(queue, args.batch * args.heads * args.length, args.head_size, [&](int64_t n) {
      const RopeRow<T> row(args, n);
      for (int64_t i = 0; i < half; i += kLanes) {
        const int64_t lanes = half - i < kLanes ? half - i : kLanes;
        const auto at = [&](const T* p) __attribute__((always_inline)) { return load_lanes(p + i, lanes); };
        const auto [first, second] = rope_point(at(row.x), at(row.x + half), at(row.cos), at(row.cos + half),
                                                at(row.sin), at(row.sin + half), args.is_reverse);
        store(row.y + i, first, lanes);
        store(row.y + half + i, second, lanes);
      }
    });
  });
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
