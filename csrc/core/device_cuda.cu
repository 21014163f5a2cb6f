// The two things that need device code in core/: a kernel that does nothing, and what the device says of its code.
#include "core/architecture.cuh"
#include "core/cuda_check.cuh"
#include "core/cuda_runtime.h"

namespace rooflab::cuda {

__global__ void empty_kernel() {}

void launch_empty(Stream stream) {
  launch(reinterpret_cast<const void*>(empty_kernel), "empty", {1, 32}, nullptr, stream);
}

// Each image of this file has its own value, and the driver loads the image that it would run.
#ifdef ROOFLAB_SM90A
__device__ CodeArchitecture loaded_code{__CUDA_ARCH__ / 10, true};
#elif defined(__CUDA_ARCH__)
__device__ CodeArchitecture loaded_code{__CUDA_ARCH__ / 10, false};
#else
__device__ CodeArchitecture loaded_code{};
#endif

CodeArchitecture code_architecture(int device) {
  const OnDevice scope(device);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // nothing here may break a capture
  RL_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  CodeArchitecture found{};
  void* address = nullptr;
  cudaStream_t stream = nullptr;
  cudaError_t status = cudaGetSymbolAddress(&address, loaded_code);
  if (status == cudaSuccess) status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (status == cudaSuccess) status = cudaMemcpyAsync(&found, address, sizeof(found), cudaMemcpyDefault, stream);
  if (status == cudaSuccess) status = cudaStreamSynchronize(stream);
  if (stream) cudaStreamDestroy(stream);
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion) {
    cudaGetLastError();
    const Properties& gpu = properties(device);
    throw CudaError(
        message("this build has no code that runs on cuda:", device, " (", gpu.name,
                "): build it with SKBUILD_CMAKE_DEFINE=ROOFLAB_CUDA_ARCHITECTURES=", gpu.compute_capability));
  }
  cuda_check(status, "reading code_architecture", __FILE_NAME__, __LINE__);
  return found;
}

}  // namespace rooflab::cuda
