// Memory for tensors: cached by size and stream, counted to the byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/device.h"

namespace rooflab {

struct Block;
namespace memory {
class Pool;
}

// One block of memory, shared by the tensors that view it.
class Storage {
 public:
  // Allocates for work on the device's current stream; throws OutOfMemory.
  enum Kind { kTensor, kScratch };  // scratch is working memory of a kernel, never a tensor's
  Storage(int64_t bytes, Device device, Kind kind = kTensor);
  // Wraps memory that somebody else owns; `release` gives it back. It is not counted. What it is used for afterwards is
  // assumed to be ordered by the default stream.
  Storage(void* data, Device device, std::function<void()> release);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  Device device() const { return device_; }
  int64_t bytes() const { return bytes_; }
  const char* op() const { return op_; }
  bool is_scratch() const { return kind_ == kScratch; }
  bool is_wrapped() const { return release_ != nullptr; }  // somebody else's memory, which may be another storage's too
  const memory::Pool* pool() const { return pool_; }       // the pool it was taken from; null for the general cache

  // Notes that work queued on `stream`, of the block's device, uses the block. Its next use waits for that work.
  void use(Stream stream) {
    if (stream.id != stream_.id) [[unlikely]]
      note_use(stream);
  }

  // Storages are numbered as they are made, from 1: the older one has the smaller number.
  int64_t number() const { return number_; }
  static int64_t made() { return made_.load(std::memory_order_relaxed); }  // the number of the newest one

  // How often an op has written into it since it was made: what is saved for backward must not have changed.
  int64_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class Allocator;
  void note_use(Stream stream);

  static inline std::atomic<int64_t> made_ = 0;

  const int64_t number_ = made_.fetch_add(1, std::memory_order_relaxed) + 1;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  std::atomic<int64_t> version_ = 0;
  Device device_;
  Stream stream_;             // the stream of its first use
  std::vector<Stream> uses_;  // other streams that use it
  Block* block_ = nullptr;
  bool is_counted_ = true;
  Kind kind_ = kTensor;
  const memory::Pool* pool_ = nullptr;
  const char* op_ = "";
  std::function<void()> release_;
  Storage* previous_ = nullptr;  // links of the list of live blocks
  Storage* next_ = nullptr;
};

}  // namespace rooflab
