// The reference rung of fused on the CPU.
#include "kernels/fused/reference.h"

namespace rooflab::kernels {

void fused_cpu_v0_reference(const FusedArgs& args, Queue&) {
  for (int64_t i = 0; i < args.launch.count / args.launch.columns; ++i) reference_chain(args, i);
}

}  // namespace rooflab::kernels
