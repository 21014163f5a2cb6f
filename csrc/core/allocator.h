// Memory for tensors: cached by size and stream, counted to the byte.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/device.h"

namespace rooflab {

struct Block;

// A capture of a graph, or a trace of a function, as others remember it: by its address, which nothing else gets while
// somebody does.
struct Recording {
  std::atomic<int64_t> replays = 0;
};

// What had written into a storage at some time. Replays do not count for what is itself captured: it runs again, on
// what is there then.
struct Version {
  static constexpr int64_t kAnyReplays = -1;
  int64_t writes = 0;   // by ops
  int64_t replays = 0;  // of graphs that write into it, or kAnyReplays
};

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
  const Recording* recording() const { return recording_.get(); }  // the capture that it was made in; null: none

  // Notes that work queued on `stream`, of the block's device, uses the block. Its next use waits for that work.
  void use(Stream stream) {
    if (stream.id != stream_.id) [[unlikely]]
      note_use(stream);
  }

  // Storages are numbered as they are made, from 1: the older one has the smaller number.
  int64_t number() const { return number_; }
  static int64_t made() { return made_.load(std::memory_order_relaxed); }  // the number of the newest one

  // What is saved for backward must not have changed.
  Version version() const;
  bool is_at(const Version& version) const {
    return version.writes == writes_.load(std::memory_order_relaxed) &&
           (version.replays == Version::kAnyReplays || version.replays == replays());
  }
  void bump_version() { writes_.fetch_add(1, std::memory_order_relaxed); }
  void bump_replays() { replays_.fetch_add(1, std::memory_order_relaxed); }

 private:
  friend class Allocator;
  void note_use(Stream stream);
  // Each replay fills what its capture made, and bumps what else it writes.
  int64_t replays() const {
    return replays_.load(std::memory_order_relaxed) +
           (recording_ ? recording_->replays.load(std::memory_order_relaxed) : 0);
  }

  static inline std::atomic<int64_t> made_ = 0;

  const int64_t number_ = made_.fetch_add(1, std::memory_order_relaxed) + 1;
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  std::atomic<int64_t> writes_ = 0, replays_ = 0;
  Device device_;
  Stream stream_;             // the stream of its first use
  std::vector<Stream> uses_;  // other streams that use it
  Block* block_ = nullptr;
  bool is_counted_ = true;
  Kind kind_ = kTensor;
  std::shared_ptr<const Recording> recording_;
  const char* op_ = "";
  std::function<void()> release_;
  Storage* previous_ = nullptr;  // links of the list of live blocks
  Storage* next_ = nullptr;
};

}  // namespace rooflab
