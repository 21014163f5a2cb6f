// The vectorised rungs of attention on the CPU.
#include "kernels/attention/attention.h"

namespace rooflab::kernels::ROOFLAB_ISA {

void attention_cpu_v2_flash_simd(const AttentionArgs& args, Stream stream) { attention_cpu_v1_flash(args, stream); }
void attention_cpu_v3_split_kv(const AttentionArgs& args, Stream stream) { attention_cpu_v1_flash(args, stream); }

}  // namespace rooflab::kernels::ROOFLAB_ISA
