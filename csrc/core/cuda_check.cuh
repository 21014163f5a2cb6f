// Checks of CUDA calls, for files that include CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace rooflab {

inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // a failed launch must not fail the next call too
  throw CudaError(message(call, " failed at ", file, ":", line, ": ", cudaGetErrorString(status)));
}

// Call after a launch: <<<...>>> itself returns nothing.
inline void cuda_check_launch(const char* op) {
  const cudaError_t status = cudaPeekAtLastError();
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();
  throw CudaError(message("[", op, "] launch failed: ", cudaGetErrorString(status)));
}

}  // namespace rooflab

#define RL_CUDA_CHECK(call) ::rooflab::cuda_check((call), #call, __FILE_NAME__, __LINE__)
