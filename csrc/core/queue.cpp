#include "core/queue.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/allocator.h"
#include "core/counters.h"
#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/target.h"

namespace rooflab {

struct Queue::Blocks {
  std::vector<std::unique_ptr<Storage>> all;
};

Queue::Queue(Device device, const char* kernel, int64_t shared_bytes)
    : device_(device),
      stream_(device.is_cuda() ? cuda::current_stream(device.index) : Stream{}),
      kernel_(kernel),
      shared_bytes_(std::max(shared_bytes, kSharedBytesOfAnyGpu)) {}

// The blocks go back to the allocator in stream order, so kernels that are still running keep them.
Queue::~Queue() { delete blocks_; }

const Target& Queue::target() const { return target_of(device_); }

void Queue::start(const void* kernel, const LaunchShape& shape, void** arguments) {
  if (shape.shared_bytes > shared_bytes_)  // then the ladder may choose the rung where it cannot run
    throw CudaError(message("[", kernel_, "] launch: asks for ", shape.shared_bytes,
                            " bytes of shared memory a block, and its footprint says at most ", shared_bytes_));
  observe(LaunchRecord::kKernel, kernel_, device_, stream_, 1,
          [&] { cuda::launch(kernel, kernel_, shape, arguments, stream_); });
}

void Queue::fill(void* data, int byte, int64_t bytes) {
  if (bytes > 0)
    observe(LaunchRecord::kFill, kernel_, device_, stream_, 0, [&] { cuda::fill(data, byte, bytes, stream_); });
}

void Queue::start_library(const Submissions& started, void (*run)(void*), void* body) {
  observe(
      LaunchRecord::kKernel, kernel_, device_, stream_, started.kernels, [&] { run(body); },
      started.kernels + started.others);
}

void* Queue::scratch_bytes(int64_t bytes) {
  if (bytes <= 0) return nullptr;
  if (!blocks_) blocks_ = new Blocks;
  return blocks_->all.emplace_back(std::make_unique<Storage>(bytes, device_, Storage::kScratch))->data();
}

}  // namespace rooflab
