// The ladder of rms_norm_rope: see rms_norm_rope.h for what it computes.
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"
#include "kernels/rms_norm_rope/rms_norm_rope.h"

namespace rooflab::kernels {

using enum Device::Type;

void rms_norm_rope_cpu_v0_reference(const RmsNormRopeArgs&, Queue&);
ROOFLAB_PER_ISA(rms_norm_rope_cpu_v1_simd, RmsNormRopeArgs)
ROOFLAB_CUDA_RUNG(rms_norm_rope_cuda_v0_reference, RmsNormRopeArgs)
ROOFLAB_CUDA_RUNG(rms_norm_rope_cuda_v1_warp_per_row, RmsNormRopeArgs)

bool rms_norm_rope_cuda_v1_accepts(const RmsNormRopeArgs& args, const Target& target) {
  return args.rope.dtype != DType::kFloat64 && args.rope.head_size / 2 * size_of(args.rope.dtype) <= 512 &&
         is_aligned(args.weight) && rope_cuda_v1_accepts(args.rope, target);
}

const Ladder<RmsNormRopeArgs> rms_norm_rope_ladder(
    "rms_norm_rope",
    {
        {"v1_warp_per_row", kCuda,
         "a warp holds a row, each lane 16 bytes of either half; aligned halves of up to 512 bytes",
         rms_norm_rope_cuda_v1_accepts, rms_norm_rope_cuda_v1_warp_per_row},
        {"v0_reference", kCuda, "one thread per row, in double", nullptr, rms_norm_rope_cuda_v0_reference},
        {"v1_simd", kCpu, "SIMD, all threads, a row at a time", nullptr, rms_norm_rope_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, in double", nullptr, rms_norm_rope_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
