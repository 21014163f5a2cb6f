// The reference rung of rms_norm_add on the CPU: see rms_norm_add.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/rms_norm_add/rms_norm_add.h"

namespace rooflab::kernels {
namespace {

template <class T>
double inverse_rms(const T* x, int64_t d, double eps) {
  double squares = 0;
  for (int64_t i = 0; i < d; ++i) squares += to_double(x[i]) * to_double(x[i]);
  return 1 / std::sqrt(squares / d + eps);
}

}  // namespace

void rms_norm_add_cpu_v0_reference(const RmsNormAddArgs& args, Queue&) {
  dispatch_floating(args.dtype, "rms_norm_add", [&]<class T>() {
    const T *weight = static_cast<const T*>(args.weight), *next = static_cast<const T*>(args.next_weight);
    for (int64_t n = 0; n < args.n; ++n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      const T* residual = static_cast<const T*>(args.residual) + n * args.residual_row_stride;
      T* h = static_cast<T*>(args.h) + n * args.d;
      const double scale = inverse_rms(x, args.d, args.eps);
      for (int64_t i = 0; i < args.d; ++i)
        h[i] = from_double<T>(to_double(residual[i]) +
                              to_double(x[i]) * scale * (to_double(weight[i]) + args.zero_centered));
      if (!next) continue;
      T* y = static_cast<T*>(args.y) + n * args.d;
      const double next_scale = inverse_rms(h, args.d, args.eps);
      for (int64_t i = 0; i < args.d; ++i)
        y[i] = from_double<T>(to_double(h[i]) * next_scale * (to_double(next[i]) + args.zero_centered));
    }
  });
}

}  // namespace rooflab::kernels
