// Memory for tensors: cached by size and stream, counted to the byte.
#pragma once

#include <cstdint>
#include <functional>

#include "core/device.h"

namespace rooflab {

// One block of memory, shared by the tensors that view it.
class Storage {
 public:
  // Allocates; throws OutOfMemory.
  Storage(int64_t bytes, Device device);
  // Wraps memory of somebody else, which `release` gives back; it is not counted.
  Storage(void* data, Device device, std::function<void()> release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  Device device() const { return device_; }
  int64_t bytes() const { return bytes_; }
  const char* op() const { return op_; }

  // How often an op wrote into it after it was made: what is saved for backward must not have changed.
  int64_t version() const { return version_; }
  void bump_version() { ++version_; }

 private:
  friend class Allocator;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t version_ = 0;
  Device device_;
  Stream stream_;  // reuse of the block is ordered after the work queued here
  const char* op_ = "";
  std::function<void()> release_;
  Storage* previous_ = nullptr;  // list of live blocks
  Storage* next_ = nullptr;
};

}  // namespace rooflab
