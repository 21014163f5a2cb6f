// The reference rung of rope on the CPU: see rope.h.
#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/rope/rope.h"

namespace rooflab::kernels {

void rope_cpu_v0_reference(const RopeArgs& args, Queue&) {
  dispatch_floating(args.dtype, "rope", [&]<class T>() {
    const int64_t half = args.head_size / 2;
    for (int64_t n = 0; n < args.batch * args.heads * args.length; ++n) {
      const RopeRow<T> row(args, n);
      for (int64_t i = 0; i < half; ++i) {
        const auto [first, second] = rope_point(to_double(row.x[i]), to_double(row.x[i + half]), to_double(row.cos[i]),
                                                to_double(row.cos[i + half]), to_double(row.sin[i]),
                                                to_double(row.sin[i + half]), args.is_reverse);
        row.y[i] = from_double<T>(first);
        row.y[i + half] = from_double<T>(second);
      }
    }
  });
}

}  // namespace rooflab::kernels
