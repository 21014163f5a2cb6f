// attention_repair on the CPU: the reference.
#include "core/dispatch.h"
#include "core/shape.h"
#include "kernels/attention_repair/attention_repair.h"

namespace rooflab::kernels {

void attention_repair_cpu_v0_reference(const AttentionRepairArgs& args, Queue&) {
  const int64_t count = args.sizes[0] * args.sizes[1] * args.sizes[2] * args.sizes[3];
  dispatch_floating(args.dtype, "attention_repair", [&]<class T>() {
    for (int64_t i = 0; i < count; ++i) static_cast<T*>(args.y)[i] = repaired_element<T>(args, i);
  });
}

}  // namespace rooflab::kernels
