// The ladder of adamw: see adamw.h for what it computes.
#include "kernels/adamw/adamw.h"
#include "kernels/common/alignment.h"
#include "kernels/common/ladder.h"

namespace rooflab::kernels {

using enum Device::Type;

ROOFLAB_PER_ISA(adamw_cpu_v1_fused, AdamwArgs)
ROOFLAB_CUDA_RUNG(adamw_cuda_v1_fused, AdamwArgs)
ROOFLAB_CUDA_RUNG(adamw_cuda_v2_many, AdamwArgs)

namespace {

bool adamw_accepts(const AdamwArgs& args, const Target&) { return args.contiguous; }

bool adamw_cuda_v2_accepts(const AdamwArgs& args, const Target&) {
  for (int i = 0; i < args.count; ++i)
    for (const void* x : {args.tensors[i].g, static_cast<const void*>(args.tensors[i].p),
                          static_cast<const void*>(args.tensors[i].m), static_cast<const void*>(args.tensors[i].v)})
      if (!is_aligned(x)) return false;
  return args.contiguous;
}

Footprint adamw_cuda_v1_footprint(const AdamwArgs& args, const Target&) { return {.launches = args.count}; }

}  // namespace

const Ladder<AdamwArgs> adamw_ladder(
    "adamw",
    {
        {"v2_many", kCuda,
         "16-byte accesses, 64 tensors per launch, found in a table by each block; aligned, contiguous tensors",
         adamw_cuda_v2_accepts, adamw_cuda_v2_many},
        {"v1_fused", kCuda, "one thread per element, one launch per tensor; contiguous tensors", adamw_accepts,
         adamw_cuda_v1_fused, adamw_cuda_v1_footprint},
        {"v0_composed", kCuda, "each of the 14 operations as a separate op", nullptr, composed<AdamwArgs>},
        {"v1_fused", kCpu, "each element read and written once, SIMD, all threads; contiguous tensors", adamw_accepts,
         adamw_cpu_v1_fused},
        {"v0_composed", kCpu, "each of the 14 operations as a separate op", nullptr, composed<AdamwArgs>},
    });

}  // namespace rooflab::kernels
