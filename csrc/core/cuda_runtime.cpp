#include "core/cuda_runtime.h"

#include <memory>
#include <mutex>
#include <vector>

#include "core/cuda_check.cuh"

namespace rooflab::cuda {
namespace {

struct Probe {
  int count = 0;
  std::string why;
};

const Probe& probe() {
  static const Probe found = [] {
    Probe result;
    const cudaError_t status = cudaGetDeviceCount(&result.count);
    if (status != cudaSuccess) {
      cudaGetLastError();
      result.count = 0;
      result.why = message("no CUDA device can be used: ", cudaGetErrorString(status));
    } else if (result.count == 0) {
      result.why = "no CUDA device can be used: the driver reports none";
    }
    return result;
  }();
  return found;
}

cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

std::string version(int number) { return message(number / 1000, ".", number % 1000 / 10); }

thread_local std::vector<Stream> thread_streams;

}  // namespace

bool is_available() { return probe().count > 0; }
std::string unavailable() { return probe().why; }
int device_count() { return probe().count; }

void check_device(int device) {
  if (!is_available()) throw CudaError(probe().why);
  if (device < 0 || device >= device_count())
    throw CudaError(message("cuda:", device, " does not exist: this machine has ", device_count(), " CUDA device(s)"));
}

const Properties& properties(int device) {
  check_device(device);
  static std::mutex mutex;
  static std::vector<std::unique_ptr<Properties>> known(device_count());
  std::lock_guard lock(mutex);
  if (!known[device]) {
    cudaDeviceProp prop;
    RL_CUDA_CHECK(cudaGetDeviceProperties(&prop, device));
    int driver = 0, runtime = 0;
    RL_CUDA_CHECK(cudaDriverGetVersion(&driver));
    RL_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    known[device] = std::make_unique<Properties>(Properties{
        prop.name, prop.major * 10 + prop.minor, prop.multiProcessorCount, static_cast<int64_t>(prop.totalGlobalMem),
        prop.l2CacheSize, static_cast<int64_t>(prop.sharedMemPerBlockOptin), version(driver), version(runtime)});
  }
  return *known[device];
}

// Asked each time: other libraries in the process set it too.
void set_device(int device) {
  int now = -1;
  if (cudaGetDevice(&now) == cudaSuccess && now == device) return;
  check_device(device);
  RL_CUDA_CHECK(cudaSetDevice(device));
}

void* allocate(int64_t bytes, int device) {
  check_device(device);
  set_device(device);
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  cuda_check(status, "cudaMalloc", __FILE_NAME__, __LINE__);
  return data;
}

void release(void* data, int device) {
  set_device(device);
  RL_CUDA_CHECK(cudaFree(data));
}

void copy(void* destination, const void* source, int64_t bytes, int device) {
  set_device(device);
  const cudaStream_t stream = raw(current_stream(device));
  RL_CUDA_CHECK(cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes), cudaMemcpyDefault, stream));
  RL_CUDA_CHECK(cudaStreamSynchronize(stream));
}

int64_t free_memory(int device) {
  check_device(device);
  set_device(device);
  size_t free = 0, total = 0;
  RL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

Stream current_stream(int device) {
  return static_cast<size_t>(device) < thread_streams.size() ? thread_streams[device] : Stream{};
}

void set_current_stream(int device, Stream stream) {
  check_device(device);
  if (static_cast<size_t>(device) >= thread_streams.size()) thread_streams.resize(device + 1);
  thread_streams[device] = stream;
}

Stream create_stream(int device) {
  check_device(device);
  set_device(device);
  cudaStream_t stream;
  RL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream{stream};
}

void destroy_stream(Stream stream) { cudaStreamDestroy(raw(stream)); }

void synchronize(int device) {
  check_device(device);
  set_device(device);
  RL_CUDA_CHECK(cudaDeviceSynchronize());
}

void synchronize(Stream stream) { RL_CUDA_CHECK(cudaStreamSynchronize(raw(stream))); }

Event::Event() {
  if (!is_available()) throw CudaError(probe().why);
  cudaEvent_t event;
  RL_CUDA_CHECK(cudaEventCreate(&event));
  handle_ = event;
}

Event::~Event() {
  if (handle_) cudaEventDestroy(static_cast<cudaEvent_t>(handle_));
}

void Event::record(Stream stream) { RL_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(handle_), raw(stream))); }

void Event::synchronize() const { RL_CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(handle_))); }

double Event::elapsed_ms(const Event& later) const {
  later.synchronize();
  float milliseconds = 0;
  RL_CUDA_CHECK(
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(handle_), static_cast<cudaEvent_t>(later.handle_)));
  return milliseconds;
}

void* load_library(const std::string& image, int device) {
  set_device(device);
  cudaLibrary_t library;
  RL_CUDA_CHECK(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  return library;
}

void unload_library(void* library) {
  cudaDeviceSynchronize();
  cudaLibraryUnload(static_cast<cudaLibrary_t>(library));
  cudaGetLastError();
}

LoadedKernel load_kernel(void* library, const std::string& symbol, int device) {
  set_device(device);
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
  if (shape.grid[0] > INT32_MAX || shape.grid[1] > 65535 || shape.grid[2] > 65535)
    refuse("a grid of ", shape.grid[0], " x ", shape.grid[1], " x ", shape.grid[2],
           " blocks, where at most 2147483647 x 65535 x 65535 are possible");
  if (shape.shared_bytes > kernel.shared_bytes_limit - kernel.static_shared_bytes)
    refuse(shape.shared_bytes, " bytes of dynamic and ", kernel.static_shared_bytes,
           " of static shared memory a block, where this GPU has ", kernel.shared_bytes_limit);
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(shape.grid[0]), static_cast<unsigned>(shape.grid[1]),
                    static_cast<unsigned>(shape.grid[2])};
  config.blockDim = {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
  config.dynamicSmemBytes = static_cast<size_t>(shape.shared_bytes);
  config.stream = raw(stream);
  cuda_check_launch(name, cudaLaunchKernelExC(&config, kernel.handle, arguments));
}

}  // namespace rooflab::cuda
