// The part of cuda_runtime.h that loads and launches kernels.
#include <map>
#include <mutex>
#include <utility>

#include "core/cuda_check.cuh"
#include "core/cuda_runtime.h"
#include "core/mutex.h"

namespace rooflab::cuda {
namespace {

dim3 raw(const char* name, const Dim3& size) {
  if ((size.x | size.y | size.z) >> 31) [[unlikely]]  // 32 bits of it might pass for a size
    throw CudaError(message("[", name, "] cannot launch: ", size.x, " x ", size.y, " x ", size.z,
                            " blocks or threads, where at most 2147483647 are possible in a dimension"));
  return dim3(static_cast<unsigned>(size.x), static_cast<unsigned>(size.y), static_cast<unsigned>(size.z));
}

// Lets the kernel's blocks have so much on the current device. The driver is asked once, or again for more.
void ask_for_shared_memory(const void* kernel, int64_t bytes) {
  static Mutex& mutex = *new Mutex(LockOrder::kTables);
  static std::map<std::pair<const void*, int>, int64_t> granted;  // by kernel and device
  int device = 0;
  RL_CUDA_CHECK(cudaGetDevice(&device));
  std::lock_guard lock(mutex);
  int64_t& most = granted[{kernel, device}];
  if (bytes <= most) return;
  RL_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  most = bytes;
}

void submit(const void* kernel, const char* name, const LaunchShape& shape, void** arguments, Stream stream) {
  cudaLaunchAttribute attributes[3]{};
  cudaLaunchConfig_t config{};
  config.gridDim = raw(name, shape.grid);
  config.blockDim = raw(name, shape.block);
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = static_cast<cudaStream_t>(stream.handle);
  config.attrs = attributes;
  if (shape.cluster > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs++].val.clusterDim = {static_cast<unsigned>(shape.cluster), 1, 1};
  }
  if (shape.early) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.together) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  // Without attributes the plain call is faster.
  const cudaError_t status = config.numAttrs ? cudaLaunchKernelExC(&config, kernel, arguments)
                                             : cudaLaunchKernel(kernel, config.gridDim, config.blockDim, arguments,
                                                                config.dynamicSmemBytes, config.stream);
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // clears the error: a failed launch must not fail the next call too
  throw CudaError(message("[", name, "] launch failed: ", cudaGetErrorString(status), cuda_aftermath(status)));
}

}  // namespace

void launch(const void* kernel, const char* name, const LaunchShape& shape, void** arguments, Stream stream) {
  if (shape.shared_bytes > kSharedBytesOfAnyGpu) ask_for_shared_memory(kernel, shape.shared_bytes);
  submit(kernel, name, shape, arguments, stream);
}

void* load_library(const std::string& image, int device) {
  const OnDevice scope(device);
  cudaLibrary_t library;
  RL_CUDA_CHECK(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

void unload_library(void* library) {
  cudaLibraryUnload(static_cast<cudaLibrary_t>(library));
  cudaGetLastError();
}

LoadedKernel load_kernel(void* library, const std::string& symbol, int device) {
  const OnDevice scope(device);
  cudaKernel_t kernel;
  RL_CUDA_CHECK(cudaLibraryGetKernel(&kernel, static_cast<cudaLibrary_t>(library), symbol.c_str()));
  cudaFuncAttributes attributes;
  RL_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  LoadedKernel loaded{kernel,
                      device,
                      attributes.maxThreadsPerBlock,
                      attributes.numRegs,
                      static_cast<int64_t>(attributes.sharedSizeBytes),
                      properties(device).shared_memory_per_block_optin};
  // Without this a block gets at most 48 KB.
  RL_CUDA_CHECK(cudaKernelSetAttributeForDevice(
      kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
      static_cast<int>(loaded.shared_bytes_limit - loaded.static_shared_bytes), device));
  return loaded;
}

void launch_kernel(const LoadedKernel& kernel, const char* name, const LaunchShape& shape, void** arguments,
                   Stream stream) {
  const auto refuse = [&](const auto&... why) { throw CudaError(message("[", name, "] cannot launch: ", why...)); };
  const auto [x, y, z] = shape.block;
  if (x > 1024 || y > 1024 || z > 64)
    refuse("a block of ", x, " x ", y, " x ", z, " threads, where at most 1024 x 1024 x 64 are possible");
  if (x * y * z > kernel.max_threads)
    refuse(x * y * z, " threads a block, where this kernel, with ", kernel.registers,
           " registers a thread, can have at most ", kernel.max_threads);
  if (shape.grid.x > INT32_MAX || shape.grid.y > 65535 || shape.grid.z > 65535)
    refuse("a grid of ", shape.grid.x, " x ", shape.grid.y, " x ", shape.grid.z,
           " blocks, where at most 2147483647 x 65535 x 65535 are possible");
  if (shape.shared_bytes > kernel.shared_bytes_limit - kernel.static_shared_bytes)
    refuse(shape.shared_bytes, " bytes of dynamic and ", kernel.static_shared_bytes,
           " of static shared memory a block, where this GPU has ", kernel.shared_bytes_limit);
  submit(kernel.handle, name, shape, arguments, stream);
}

}  // namespace rooflab::cuda
