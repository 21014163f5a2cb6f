// The reference rung of rms_norm_rope on the CPU: see rms_norm_rope.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/rms_norm_rope/rms_norm_rope.h"

namespace rooflab::kernels {

void rms_norm_rope_cpu_v0_reference(const RmsNormRopeArgs& args, Queue&) {
  const RopeArgs& rope = args.rope;
  dispatch_floating(rope.dtype, "rms_norm_rope", [&]<class T>() {
    const int64_t d = rope.head_size, half = d / 2;
    const T* weight = static_cast<const T*>(args.weight);
    for (int64_t n = 0; n < rope.batch * rope.heads * rope.length; ++n) {
      const RopeRow<T> row(rope, n);
      double squares = 0;
      for (int64_t i = 0; i < d; ++i) squares += to_double(row.x[i]) * to_double(row.x[i]);
      const double scale = 1 / std::sqrt(squares / d + args.eps);
      const auto normal = [&](int64_t i) {
        return to_double(row.x[i]) * scale * (to_double(weight[i]) + args.zero_centered);
      };
      for (int64_t i = 0; i < half; ++i) {
        const auto [first, second] =
            rope_point(normal(i), normal(i + half), to_double(row.cos[i]), to_double(row.cos[i + half]),
                       to_double(row.sin[i]), to_double(row.sin[i + half]), false);
        row.y[i] = from_double<T>(first);
        row.y[i + half] = from_double<T>(second);
      }
    }
  });
}

}  // namespace rooflab::kernels
