// The GPU that the calling thread's launches go to.
#pragma once

#include "core/cuda_check.cuh"
#include "core/cuda_runtime.h"

namespace rooflab::kernels {

inline const cuda::Properties& cuda_current_properties() {
  int device = 0;
  RL_CUDA_CHECK(cudaGetDevice(&device));
  return cuda::properties(device);
}

}  // namespace rooflab::kernels
