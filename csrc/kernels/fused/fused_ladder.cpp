// The ladder of fused: see fused.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/fused/fused.h"

namespace rooflab::kernels {

using enum Device::Type;

void fused_cpu_v0_reference(const FusedArgs& args, Queue& queue);
ROOFLAB_PER_ISA(fused_cpu_v1_blocks, FusedArgs)
ROOFLAB_CUDA_RUNG(fused_cuda_v0_reference, FusedArgs)
void fused_cuda_v1_nvrtc(const FusedArgs& args, Queue& queue);

static bool counts_columns_in_int(const FusedArgs& args, const Target&) {
  return args.launch.columns < int64_t{1} << 30;
}

const Ladder<FusedArgs> fused_ladder(
    "fused",
    {
        {"v1_nvrtc", kCuda,
         "a kernel generated for the chain, compiled by NVRTC at first use; rows that are reduced stay in registers",
         counts_columns_in_int, fused_cuda_v1_nvrtc},
        {"v0_reference", kCuda, "one element per thread, in double", nullptr, fused_cuda_v0_reference},
        {"v1_blocks", kCpu, "blocks of 512 elements stay in L1 through the whole chain, SIMD, all threads", nullptr,
         fused_cpu_v1_blocks},
        {"v0_reference", kCpu, "one thread, an element at a time, in double", nullptr, fused_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
