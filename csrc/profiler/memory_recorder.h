// Records each block of memory that tensors take or give back: for which op, how large, and from when to when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/memory.h"
#include "core/mutex.h"

namespace rooflab::profiler {

struct MemoryBlock {
  const char* op;     // the op that allocated it; "" for the user
  std::string range;  // current_range() at the time; "" for a block older than the recording
  Device device;
  int64_t bytes;
  bool is_scratch;  // working memory of a kernel, not a tensor
  int64_t stack;    // of the Python code that asked for it, if stacks are taken (bindings/no_gil.h); 0: unknown
};

struct MemoryEvent {
  int64_t time_ns;  // of the host, since start()
  size_t block;     // its place in blocks()
  bool freed;
};

class MemoryRecorder final : public memory::Listener {
 public:
  // Without a device it records all of them together.
  explicit MemoryRecorder(std::optional<Device> device) : device_(device) {}
  ~MemoryRecorder() override { stop(); }
  MemoryRecorder(const MemoryRecorder&) = delete;
  MemoryRecorder& operator=(const MemoryRecorder&) = delete;

  void start();
  void stop();

  int64_t resident_bytes() const { return resident_; }  // in tensors at start()
  int64_t live_bytes() const { return live_; }          // above that, now or at stop()
  int64_t peak_bytes() const { return peak_; }          // the highest value of live_bytes()
  int64_t duration_ns() const { return duration_ns_; }
  int64_t dropped() const { return dropped_; }  // events for which the host had no memory; not included below
  const std::vector<MemoryBlock>& blocks() const { return blocks_; }
  const std::vector<MemoryEvent>& events() const { return events_; }  // as they happened

  void allocated(const Storage& block) override;
  void freed(const Storage& block) override;

 private:
  bool ignores(const Storage& block) const;
  void note(const Storage& block, bool freed);

  std::optional<Device> device_;
  Mutex mutex_{LockOrder::kRecorders};  // other libraries may free tensors that they hold in their own threads
  bool running_ = false;
  int64_t start_ns_ = 0, duration_ns_ = 0;
  int64_t resident_ = 0, live_ = 0, peak_ = 0, dropped_ = 0;
  std::unordered_map<const Storage*, size_t> live_blocks_;
  std::vector<MemoryBlock> blocks_;
  std::vector<MemoryEvent> events_;
};

}  // namespace rooflab::profiler
