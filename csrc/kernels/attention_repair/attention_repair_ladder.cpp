// The ladder of attention_repair: see attention_repair.h for what it computes.
#include "kernels/attention_repair/attention_repair.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void attention_repair_cpu_v0_reference(const AttentionRepairArgs&, Queue&);
ROOFLAB_CUDA_RUNG(attention_repair_cuda_v0_reference, AttentionRepairArgs)

const Ladder<AttentionRepairArgs> attention_repair_ladder(
    "attention_repair", {{"v0_reference", kCuda, "one element per thread", nullptr, attention_repair_cuda_v0_reference},
                         {"v0_reference", kCpu, "one thread", nullptr, attention_repair_cpu_v0_reference}});

}  // namespace rooflab::kernels
