// The reference rung of softmax on the CPU: see softmax.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/softmax/softmax.h"

namespace rooflab::kernels {

void softmax_cpu_v0_reference(const SoftmaxArgs& args, Queue&) {
  dispatch_floating(args.dtype, "softmax", [&]<class T>() {
    for (int64_t n = 0; n < args.n; ++n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      T* y = static_cast<T*>(args.y) + n * args.d;
      double maximum = -INFINITY, sum = 0;
      for (int64_t i = 0; i < args.d; ++i)
        if (const double value = to_double(x[i]); value > maximum) maximum = value;  // passes over NaN
      for (int64_t i = 0; i < args.d; ++i) sum += std::exp(to_double(x[i]) - maximum);
      for (int64_t i = 0; i < args.d; ++i) {
        const double distance = to_double(x[i]) - maximum;
        y[i] = from_double<T>(args.logarithm ? distance - std::log(sum) : std::exp(distance) / sum);
      }
    }
  });
}

}  // namespace rooflab::kernels
