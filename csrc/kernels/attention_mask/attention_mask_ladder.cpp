// The ladder of attention_mask: see attention_mask.h for what it computes.
#include "kernels/attention_mask/attention_mask.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

void attention_mask_cpu_v0_reference(const AttentionMaskArgs&, Queue&);
ROOFLAB_CUDA_RUNG(attention_mask_cuda_v0_reference, AttentionMaskArgs)

const Ladder<AttentionMaskArgs> attention_mask_ladder(
    "attention_mask", {{"v0_reference", kCuda, "one element per thread", nullptr, attention_mask_cuda_v0_reference},
                       {"v0_reference", kCpu, "one thread", nullptr, attention_mask_cpu_v0_reference}});

}  // namespace rooflab::kernels
