// Checks of CUDA calls, for files that include CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "core/error.h"

namespace rooflab {

// After these errors every later call of the process fails too.
inline const char* cuda_aftermath(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
      return "; a kernel that was launched earlier did this, and the process has lost its CUDA context with all that "
             "was in GPU memory: restart it";
    default: return "";
  }
}

inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears the error: a failed launch must not fail the next call too
  throw CudaError(
      message(call, " failed at ", file, ":", line, ": ", cudaGetErrorString(status), cuda_aftermath(status)));
}

}  // namespace rooflab

#define RL_CUDA_CHECK(call) ::rooflab::cuda_check((call), #call, __FILE_NAME__, __LINE__)
