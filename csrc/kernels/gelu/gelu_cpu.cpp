// GeLU on the CPU: the reference.
#include "core/dispatch.h"
#include "kernels/common/strided.h"
#include "kernels/gelu/gelu.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels {

void gelu_cpu_v0_reference(const GeluArgs& args, Queue&) {
  dispatch_floating(args.dtype, "gelu", [&]<class T>() {
    using Exact = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < args.count; ++i) {
      int64_t offset[1] = {};
      add_offsets(i, args.ndim, args.sizes, {args.strides}, offset);
      const double x = static_cast<Exact>(static_cast<const T*>(args.x)[offset[0]]);
      static_cast<T*>(args.y)[i] = T(static_cast<Exact>(gelu_reference(x)));
    }
  });
}

}  // namespace rooflab::kernels
