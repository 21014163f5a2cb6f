// Exact counts of what the runtime does. Launches, ops, host calls and allocations are events, counted as they happen;
// MACs, FLOPs and compulsory bytes are declared by each op and checked against its spec. Grades rest on these; clocks
// only inform.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/cost.h"
#include "core/device.h"
#include "core/range.h"

namespace rooflab {

// One op's counts fit in 64 bits. Their sum over a training step of a large model does not.
__extension__ using Count = __int128;

struct Counts {
  Count ops = 0;         // calls of ops, the same on every device; what an op calls inside is part of it
  Count launches = 0;    // kernels that ran
  Count host_calls = 0;  // submissions to the device: launches, fills, copies, replays of graphs
  Count macs = 0;
  Count flops = 0;
  Count bytes_read = 0;
  Count bytes_written = 0;
  Count allocations = 0;      // blocks of memory allocated for tensors and scratch
  Count bytes_allocated = 0;  // the sum of their sizes
};

// Counts everything between start() and stop(), in all threads. Counters nest.
class Counter {
 public:
  Counter() = default;
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void start();  // throws std::runtime_error while it counts
  void stop();

  struct Results {
    Counts total;
    std::map<std::string, Counts> by_op;
    std::map<std::string, Counts> by_range;  // keys are paths, "mlp" and "mlp/gate"; a path includes its inner ranges
    int64_t peak_bytes = 0;                  // highest memory held, above what was held at start()
  };
  Results results() const;  // so far; other threads may go on counting

 private:
  friend struct CounterAccess;
  Results results_;
  int64_t held_at_start_ = 0;
  bool running_ = false;
};

// What a PrivateCounter has counted, and what its thread returns to.
struct PrivateCounts {
  Counts total;
  std::map<std::string, Counts> by_op;
  bool is_seen = false;
  std::atomic<bool> is_open{false};
  Mode outer;

  void add(const std::string& op, const Cost& cost);
};

// Counts the calls of its thread between begin() and end() on tensors without memory, for somebody who asks what they
// cost: no counter, listener, graph or trace hears of them, and autocast does not apply. What its thread does on other
// devices is counted as ever. They nest: the innermost counts.
class PrivateCounter {
 public:
  explicit PrivateCounter(bool is_seen = false);  // is_seen: counters and listeners hear of the calls too
  ~PrivateCounter();                              // ends it if it was begun in this thread
  PrivateCounter(const PrivateCounter&) = delete;
  PrivateCounter& operator=(const PrivateCounter&) = delete;

  void begin();  // throws std::runtime_error while it counts
  // Ends those that were begun inside too. Throws std::runtime_error where none of this thread's is this one.
  void end();

  // Of this thread; null: it works in public.
  static PrivateCounts* current() { return context().mode.counter.get(); }
  static bool hides(Device device) { return device.is_meta() && hides(); }
  static bool hides() { return current() && !current()->is_seen; }

  // So far.
  const Counts& total() const { return counts_->total; }
  const std::map<std::string, Counts>& by_op() const { return counts_->by_op; }

 private:
  bool is_open_here() const;

  std::shared_ptr<PrivateCounts> counts_;  // its thread holds them as well, so that it never refers to what is gone
};

// One submission to a device, as the observers see it.
struct LaunchRecord {
  enum Kind : uint8_t { kKernel, kFill, kCopy, kReplay };
  Kind kind;
  const char* op;      // "softmax"
  const char* kernel;  // the rung: "softmax_cuda_v2_one_pass"
  Device device;
  Stream stream;
  int kernels;         // how many ran: 1, more where a vendor's library starts several; 0 for fills and copies
  Cost cost;           // of the whole work that this submission belongs to
  DType dtype;         // that the work is computed in
  int64_t work;        // number of that work in this process
  std::string range;   // current_range() at the submission
  int64_t id;          // number of the submission in this process, from 1
  int host_calls = 1;  // how many submissions this stands for: more than one where a vendor's library makes several
  std::shared_ptr<const std::vector<LaunchRecord>> replayed;  // kReplay: what was captured, in order
  int64_t replay = 0;  // number of the replay of a graph that it belongs to; 0: of none
};

enum class RangeEvent {
  kOpened,
  kClosed,
  kFailed,    // closed by an exception
  kLeftOpen,  // closed because the range around it was
};

// Is told of ranges, in the thread that opens or closes them, from when it is added until it is removed. Must not
// throw.
struct RangeListener {
  virtual ~RangeListener() = default;
  virtual void range(RangeEvent event, const std::string& path) = 0;
};
void add_range_listener(RangeListener* listener);
void remove_range_listener(RangeListener* listener);

// Is told of submissions, ranges and calls of ops likewise; the profiler is such a listener. Must not throw.
struct LaunchListener : RangeListener {
  virtual void scope(bool opened, const OpScope& scope) = 0;
  virtual void shapes(const OpScope& scope, const std::string& shapes) = 0;  // of its operands
  virtual void before(const LaunchRecord& launch) = 0;
  virtual void after(const LaunchRecord& launch, bool done) = 0;  // not done: the submission threw
};
void add_listener(LaunchListener* listener);
void remove_listener(LaunchListener* listener);

// The calls that a graph captured instead of running. They are counted at every replay.
struct CapturedCall {
  std::string op, range;
  bool is_op;
  Cost cost;
};
struct CaptureLog {
  Device device;
  std::shared_ptr<std::vector<LaunchRecord>> launches = std::make_shared<std::vector<LaunchRecord>>();
  std::vector<CapturedCall> calls;
  std::vector<std::function<void()>> cpu_work;  // on the CPU: what each launch runs
};
// Where this thread's calls are recorded; null when they run.
inline CaptureLog* capture_log() { return context().mode.log; }

// Runs what was captured once more and counts it, as one host call. On a GPU, `submit` runs it.
void replay(const CaptureLog& log, Stream stream, const std::function<void()>& submit);

namespace detail {
extern std::atomic<int> observers;         // the number of running counters and listeners
extern std::atomic<int> launch_listeners;  // of these, the listeners
void tell_scope(bool opened, const OpScope& scope);
LaunchRecord begin_launch(LaunchRecord::Kind kind, const char* kernel, Device device, Stream stream, int kernels,
                          int host_calls);
void end_launch(const LaunchRecord& launch, bool done);
}  // namespace detail

// Submits something and counts it. Costs one branch when nobody is listening.
template <class Submit>
void observe(LaunchRecord::Kind kind, const char* kernel, Device device, Stream stream, int kernels, Submit&& submit,
             int host_calls = 1) {
  if ((detail::observers.load(std::memory_order_relaxed) == 0 && !capture_log()) || PrivateCounter::hides(device))
      [[likely]] {
    submit();
    return;
  }
  const LaunchRecord record = detail::begin_launch(kind, kernel, device, stream, kernels, host_calls);
  try {
    submit();
  } catch (...) {
    detail::end_launch(record, false);
    throw;
  }
  detail::end_launch(record, true);
}

// Called when an op is done.
void count_call(const OpScope& call);
// Called by the allocator for each block that it hands out, with the total then held.
void count_allocation(int64_t bytes, int64_t held_now);
// Called when a range opens or closes.
void notify_range(RangeEvent event);
// Called when a call of an op, or a wait, begins or ends. Costs one branch when nobody is listening.
inline void notify_scope(bool opened, const OpScope& scope) {
  if (detail::launch_listeners.load(std::memory_order_relaxed)) detail::tell_scope(opened, scope);
}
// Called with the shapes of an op's operands where a listener wants them.
inline std::atomic<bool> shapes_are_wanted{false};
void notify_shapes(const OpScope& scope, const std::string& shapes);

}  // namespace rooflab
