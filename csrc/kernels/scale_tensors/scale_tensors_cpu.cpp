// The reference rung of scale_tensors on the CPU: see scale_tensors.h for what it computes.
#include "core/dispatch.h"
#include "kernels/common/reference.h"
#include "kernels/scale_tensors/scale_tensors.h"

namespace rooflab::kernels {

void scale_tensors_cpu_v0_reference(const ScaleTensorsArgs& args, Queue&) {
  dispatch_floating(args.dtype, "scale_tensors", [&]<class T>() {
    const double factor = sizeof(T) == 8 ? *args.factor : static_cast<float>(*args.factor);
    for (int i = 0; i < args.list.count; ++i) {
      T* const x = static_cast<T*>(args.list.tensors[i].data);
      for (int64_t j = 0; j < args.list.tensors[i].n; ++j) x[j] = from_double<T>(to_double(x[j]) * factor);
    }
  });
}

}  // namespace rooflab::kernels
