// The ladder of scale_tensors: see scale_tensors.h for what it computes.
#include "kernels/common/ladder.h"
#include "kernels/scale_tensors/scale_tensors.h"

namespace rooflab::kernels {

using enum Device::Type;

void scale_tensors_cpu_v0_reference(const ScaleTensorsArgs&, Queue&);
ROOFLAB_PER_ISA(scale_tensors_cpu_v1_simd, ScaleTensorsArgs)
ROOFLAB_CUDA_RUNG(scale_tensors_cuda_v0_reference, ScaleTensorsArgs)
ROOFLAB_CUDA_RUNG(scale_tensors_cuda_v1_many, ScaleTensorsArgs)

namespace {

Footprint scale_tensors_cuda_v0_footprint(const ScaleTensorsArgs& args, const Target&) {
  return {.launches = args.list.count};
}

}  // namespace

const Ladder<ScaleTensorsArgs> scale_tensors_ladder(
    "scale_tensors",
    {
        {"v1_many", kCuda, "16-byte accesses, up to 192 tensors per launch, found in a table by each block", nullptr,
         scale_tensors_cuda_v1_many},
        {"v0_reference", kCuda, "one thread per element, one launch per tensor", nullptr,
         scale_tensors_cuda_v0_reference, scale_tensors_cuda_v0_footprint},
        {"v1_simd", kCpu, "SIMD, all threads", nullptr, scale_tensors_cpu_v1_simd},
        {"v0_reference", kCpu, "one thread, one element after the other", nullptr, scale_tensors_cpu_v0_reference},
    });

}  // namespace rooflab::kernels
