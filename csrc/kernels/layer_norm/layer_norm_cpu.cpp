// The reference rung of layer_norm on the CPU: see layer_norm.h.
#include <cmath>

#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/layer_norm/layer_norm.h"

namespace rooflab::kernels {

void layer_norm_cpu_v0_reference(const LayerNormArgs& args, Queue&) {
  dispatch_floating(args.dtype, "layer_norm", [&]<class T>() {
    const T* weight = static_cast<const T*>(args.weight);
    const T* bias = static_cast<const T*>(args.bias);
    for (int64_t n = 0; n < args.n; ++n) {
      const T* x = static_cast<const T*>(args.x) + n * args.x_row_stride;
      T* y = static_cast<T*>(args.y) + n * args.d;
      double sum = 0, distances = 0, squares = 0;
      for (int64_t i = 0; i < args.d; ++i) sum += to_double(x[i]);
      const double mean = sum / args.d;
      for (int64_t i = 0; i < args.d; ++i) distances += to_double(x[i]) - mean;
      const double rest = distances / args.d;  // what the rounded mean lacks
      const auto distance = [&](int64_t i) { return to_double(x[i]) - mean - rest; };
      for (int64_t i = 0; i < args.d; ++i) squares += distance(i) * distance(i);
      const double scale = 1 / std::sqrt(squares / args.d + args.eps);
      for (int64_t i = 0; i < args.d; ++i)
        y[i] =
            from_double<T>(distance(i) * scale * (weight ? to_double(weight[i]) : 1) + (bias ? to_double(bias[i]) : 0));
    }
  });
}

}  // namespace rooflab::kernels
