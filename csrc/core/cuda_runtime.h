// What rooflab asks of the CUDA runtime, free of CUDA headers. cuda_runtime.cpp answers with CUDA (linked statically),
// no_cuda.cpp in builds without it: there is_available() is false and every other call raises one sentence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/device.h"

namespace rooflab::cuda {

bool is_available();        // compiled in, a driver, and at least one GPU
std::string unavailable();  // why not, as a sentence; "" when it is
int device_count();
void check_device(int device);  // throws CudaError unless the device exists

struct Properties {
  std::string name;
  int compute_capability = 0;  // 90 for sm_90
  int sm_count = 0;
  int64_t memory_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t shared_memory_per_block_optin = 0;
  std::string driver_version, runtime_version;  // "13.0"
};
const Properties& properties(int device);

// The device of the calling thread is `device` from here on.
void set_device(int device);

void* allocate(int64_t bytes, int device);  // null when the device has no room
void release(void* data, int device);
// Copies and waits until done, so that pageable host memory may go away.
void copy(void* destination, const void* source, int64_t bytes, int device);
int64_t free_memory(int device);

Stream current_stream(int device);
void set_current_stream(int device, Stream stream);
Stream create_stream(int device);
void destroy_stream(Stream stream);
void synchronize(int device);
void synchronize(Stream stream);

// A point in a stream's time.
class Event {
 public:
  Event();
  ~Event();
  Event(Event&& other) noexcept : handle_(other.handle_) { other.handle_ = nullptr; }
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  void record(Stream stream);
  void synchronize() const;
  // Milliseconds from this event to `later`; both must have been recorded. Waits for `later`.
  double elapsed_ms(const Event& later) const;

 private:
  void* handle_ = nullptr;
};

// One launch of a kernel that does nothing, for measuring what a launch costs.
void launch_empty(Stream stream);

// Machine code made at run time (core/cuda_module.h).
void* load_library(const std::string& image, int device);
void unload_library(void* library);  // waits for the device: a kernel of it may be running

struct LoadedKernel {
  void* handle = nullptr;
  int device = 0;
  int64_t max_threads = 0;  // a block; fewer than the GPU's 1024 when the registers do not suffice
  int64_t registers = 0;    // a thread
  int64_t static_shared_bytes = 0;
  int64_t shared_bytes_limit = 0;  // static and dynamic, of this GPU
};
LoadedKernel load_kernel(void* library, const std::string& symbol, int device);

struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  int64_t shared_bytes = 0;  // dynamic
};
// Throws CudaError, with the reason in words, when the GPU cannot run the shape. `name` is for messages.
void launch_kernel(const LoadedKernel& kernel, const char* name, const LaunchShape& shape, void** arguments,
                   Stream stream);

}  // namespace rooflab::cuda
