// Exact counts of what the runtime does, the same on every run and device. Grades rest on these; clocks only inform.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/device.h"

namespace rooflab {

// What one kernel has to do. FLOPs include 2 for each MAC; bytes are compulsory: each input once, each output once.
struct Cost {
  int64_t macs = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

struct Counts {
  int64_t launches = 0;    // backend kernel calls
  int64_t host_calls = 0;  // submissions from host to device
  int64_t macs = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
  int64_t allocations = 0;      // tensors given memory
  int64_t bytes_allocated = 0;  // their sizes, added up
};

// Counts everything between start() and stop(). Counters nest.
class Counter {
 public:
  Counter() = default;
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void start();
  void stop();

  Counts total;
  std::map<std::string, Counts> by_op;
  std::map<std::string, Counts> by_range;  // keys are paths, "mlp" and "mlp/gate"; a path includes what is under it
  int64_t peak_bytes = 0;                  // highest memory in tensors, above what was held at start()

 private:
  friend void count_allocation(int64_t bytes, int64_t held_now);
  int64_t held_at_start_ = 0;
  bool running_ = false;
};

// One kernel call as the observers see it.
struct LaunchRecord {
  const char* op;      // "softmax"
  const char* kernel;  // "softmax_cpu_v2_one_pass"
  Device device;
  Stream stream;
  Cost cost;
  std::string range;  // current_range() at the call
  int64_t id;         // number of the launch in this process, from 1
};

// Hears of launches and ranges while it is added; the profiler is one. Must not throw.
struct LaunchListener {
  virtual ~LaunchListener() = default;
  virtual void before(const LaunchRecord& launch) = 0;
  virtual void after(const LaunchRecord& launch, bool done) = 0;  // not done: the submission threw
  virtual void range(bool opened, const std::string& path) { (void)opened, (void)path; }
};
void add_listener(LaunchListener* listener);
void remove_listener(LaunchListener* listener);

namespace detail {
extern int observers;  // running counters and listeners
LaunchRecord begin_launch(const char* op, const char* kernel, Device device, Stream stream, const Cost& cost);
void end_launch(const LaunchRecord& launch, bool done);
}  // namespace detail

// Submits one kernel and counts it. Costs one branch when nobody listens.
template <class Submit>
void launch(const char* op, const char* kernel, Device device, Stream stream, const Cost& cost, Submit&& submit) {
  if (detail::observers == 0) [[likely]] {
    submit();
    return;
  }
  const LaunchRecord record = detail::begin_launch(op, kernel, device, stream, cost);
  try {
    submit();
  } catch (...) {
    detail::end_launch(record, false);
    throw;
  }
  detail::end_launch(record, true);
}

// Called by the allocator for each tensor that gets memory, with what all tensors then hold.
void count_allocation(int64_t bytes, int64_t held_now);
// Called when a range opens or closes.
void notify_range(bool opened);

}  // namespace rooflab
