// The reference rung of logsumexp on the CPU: see logsumexp.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/logsumexp/logsumexp.h"

namespace rooflab::kernels {

void logsumexp_cpu_v0_reference(const LogsumexpArgs& args, Queue&) {
  dispatch_floating(args.dtype, "logsumexp", [&]<class T>() {
    for (int64_t output = 0; output < args.outer * args.inner; ++output) {
      const int64_t row = output / args.inner, column = output % args.inner;
      const T* x = static_cast<const T*>(args.x) + row * args.outer_stride + column * args.inner_stride;
      double maximum = -INFINITY, sum = 0;
      for (int64_t k = 0; k < args.reduced; ++k)  // std::fmax here crashes GCC 12 for aarch64
        if (const double value = to_double(x[k * args.reduced_stride]); value > maximum) maximum = value;
      const double shift = std::isinf(maximum) ? 0 : maximum;
      for (int64_t k = 0; k < args.reduced; ++k) sum += std::exp(to_double(x[k * args.reduced_stride]) - shift);
      static_cast<T*>(args.y)[output] = from_double<T>(shift + std::log(sum));
    }
  });
}

}  // namespace rooflab::kernels
