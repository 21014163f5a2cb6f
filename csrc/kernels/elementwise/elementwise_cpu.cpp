// The reference rung of the elementwise family on the CPU.
#include "core/queue.h"
#include "kernels/elementwise/reference.h"

namespace rooflab::kernels {

void elementwise_cpu_v0_reference(const ElementwiseArgs& args, Queue&) {
  for (int64_t i = 0; i < args.count; ++i) reference_element(args, i);
}

}  // namespace rooflab::kernels
