// What rooflab needs from the CUDA runtime, free of CUDA headers. cuda_runtime.cpp and
// cuda_runtime_kernels.cpp implement it with CUDA (linked statically). no_cuda.cpp does in builds without CUDA: there
// is_available() is false and every other call raises one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/code_architecture.h"
#include "core/device.h"
#include "core/launch_shape.h"
#include "core/out_of_range.h"

namespace rooflab::cuda {

bool is_available();        // compiled in, and there are a driver and at least one GPU
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

// What the code of this build's kernels that runs on the device was compiled for: the device itself says so, because
// the driver chooses among machine code and PTX. Throws CudaError where the build has none for it.
CodeArchitecture code_architecture(int device);

// Makes `device` the calling thread's device for a scope. Other libraries in the process find theirs again afterwards.
class OnDevice {
 public:
  explicit OnDevice(int device);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = -1;  // -1: it was `device` already
};

void* allocate(int64_t bytes, int device);  // null when the device has no room; does not break captures of this thread
void release(void* data, int device);
int device_of(const void* data);  // the GPU that owns the memory; 0 if none does
// Copies and waits until done, so that pageable host memory may be freed afterwards.
void copy(void* destination, const void* source, int64_t bytes, int device);
int64_t free_memory(int device);

// Where kernels on the device report a number that is out of range: memory of the host. `raise_out_of_range` throws
// what was reported, once. It is called after each wait that a user has asked for.
OutOfRange* out_of_range(int device);
void raise_out_of_range(int device);

Stream current_stream(int device);
void set_current_stream(int device, Stream stream);
Stream create_stream(int device);
void destroy_stream(Stream stream) noexcept;  // waits for its work; memory cached for it goes to the default stream
bool is_alive(Stream stream);                 // until it is destroyed; always for the default stream and foreign ones
bool is_capturing(Stream stream);
void synchronize(int device);  // breaks no capture of another thread
void synchronize(Stream stream, int device);
// Later work on `waiter` runs after what `other` has been given so far; both are streams of the device.
void wait(Stream waiter, Stream other, int device);

// While it lives, no thread begins a capture on the device. So the allocator can wait for the GPU, and free memory.
class NoCapture {
 public:
  explicit NoCapture(int device);
  ~NoCapture();
  NoCapture(const NoCapture&) = delete;
  NoCapture& operator=(const NoCapture&) = delete;

  bool holds() const;  // false if a capture is under way
  void synchronize() const;

 private:
  const int device_;
};

// A point in time on a stream of `device`.
class Event {
 public:
  explicit Event(int device);
  ~Event();
  Event(Event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), device_(other.device_) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(device_, other.device_);
    return *this;
  }

  int device() const { return device_; }
  void record(Stream stream);
  void synchronize() const;
  // Milliseconds from this event to `later`; both must have been recorded. Waits for `later`.
  double elapsed_ms(const Event& later) const;

 private:
  void* handle_ = nullptr;
  int device_;
};

// What core/queue.h starts: a __global__ function of this binary, and a fill of bytes in stream order.
void launch(const void* kernel, const char* name, const LaunchShape& shape, void** arguments, Stream stream);
void fill(void* data, int byte, int64_t bytes, Stream stream);

// Counts what `submit` puts into the stream that it is given; none of it runs.
Submissions count_submissions(int device, const std::function<void(Stream)>& submit);

// Graphs: what is submitted to `stream` between the first two is recorded, not run. Handles are cudaGraphExec_t.
void begin_capture(Stream stream, int device);
void* end_capture(Stream stream, int device);
void abandon_capture(Stream stream, int device);
void launch_graph(void* graph, int device, Stream stream);
void destroy_graph(void* graph);  // null is ignored

// One launch of a kernel that does nothing, to measure the cost of a launch.
void launch_empty(Stream stream);

// Machine code made at run time (core/cuda_module.h).
void* load_library(const std::string& image, int device);
void unload_library(void* library);  // none of its kernels may be running

struct LoadedKernel {
  void* handle = nullptr;
  int device = 0;
  int64_t max_threads = 0;  // per block; fewer than the GPU's 1024 when there are too few registers
  int64_t registers = 0;    // per thread
  int64_t static_shared_bytes = 0;
  int64_t shared_bytes_limit = 0;  // static and dynamic together, on this GPU
};
LoadedKernel load_kernel(void* library, const std::string& symbol, int device);

// Throws CudaError, with the reason in words, when the GPU cannot run the shape. `name` is for messages.
void launch_kernel(const LoadedKernel& kernel, const char* name, const LaunchShape& shape, void** arguments,
                   Stream stream);

}  // namespace rooflab::cuda
