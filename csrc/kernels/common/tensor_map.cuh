// The driver's function that encodes tensor maps, for rungs that load tiles by the copy engine (ptx_hopper.cuh). It is
// looked up at run time, because libcuda is never linked.
#pragma once

#include <cudaTypedefs.h>

#include "core/cuda_check.cuh"

namespace rooflab::kernels {

inline PFN_cuTensorMapEncodeTiled_v12000 tensor_map_encoder() {
  static const auto encoder = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    RL_CUDA_CHECK(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) throw CudaError("the driver has no cuTensorMapEncodeTiled");
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
  }();
  return encoder;
}

}  // namespace rooflab::kernels
