// The reference rung of rms_norm on the CPU: see rms_norm.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/rms_norm/rms_norm.h"

namespace rooflab::kernels {

void rms_norm_cpu_v0_reference(const RmsNormArgs& args, Queue&) {
  dispatch_floating(args.dtype, "rms_norm", [&]<class T>() {
    const T* weight = static_cast<const T*>(args.weight);
    for (int64_t n = 0; n < args.n; ++n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      T* y = static_cast<T*>(args.y) + n * args.d;
      double squares = 0;
      for (int64_t i = 0; i < args.d; ++i) squares += to_double(x[i]) * to_double(x[i]);
      const double scale = 1 / std::sqrt(squares / args.d + args.eps);
      for (int64_t i = 0; i < args.d; ++i)
        y[i] = from_double<T>(to_double(x[i]) * scale * (weight ? to_double(weight[i]) + args.zero_centered : 1));
    }
  });
}

}  // namespace rooflab::kernels
