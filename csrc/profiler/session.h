// Records every kernel that runs in the steps of a session, with the op and range that launched it.
//
// Kernels on the CPU are timed by a monotonic clock around each launch. Times of GPU kernels come from CUPTI, including
// the kernels of other libraries; if CUPTI is missing or refused, CUDA events time rooflab's own launches. On a device
// without memory nothing runs: its launches are recorded with their position, and the reader lays them out in time.
// source() says which of these was used.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/counters.h"
#include "core/mutex.h"
#include "core/range.h"
#include "profiler/device_timer.h"

namespace rooflab::profiler {

// One kernel as it ran. Of several kernels of one piece of work, the longest carries its cost, the others none. Where
// source() is "model", the first carries it, and all times are positions in the order of events.
struct KernelRecord {
  std::string name;    // the symbol of a GPU kernel, the rung of a CPU kernel
  std::string op;      // "softmax"; "" if another library launched it
  std::string kernel;  // the rung, "softmax_cuda_v2_one_pass"; "" as above
  std::string range;   // "mlp/gate_proj"
  Device device;
  int64_t stream = 0;
  int thread = 0;  // that launched it: 0 started the session, the others are numbered as they are seen
  int64_t id = 0;  // number of the launch; 0 if another library's
  int step = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  std::array<int32_t, 3> grid{}, block{};  // zero on the CPU, for copies, and where only events are available
  int64_t shared_bytes = 0;
  int32_t registers = 0;
  Cost cost;
  DType dtype = DType::kFloat32;  // that the launch computes in
};

struct RangeRecord {
  std::string path;
  int thread = 0;
  int step = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  std::string ended;  // "closed", "by an exception", "left open", or "open" at the end of the step
};

// What a thread of the host did: a call of an op, a part of one that has a name of its own, a submission to a device,
// or a wait for one. Those of a thread nest.
struct HostRecord {
  std::string kind;  // "op", "part", "launch" or "wait"
  std::string name;
  std::string range;
  Device device;  // of a launch
  int thread = 0;
  int step = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
  int64_t launch = 0;  // KernelRecord::id of what it submitted; 0 if it is no launch
  std::string shapes;  // of an op's operands, if they were asked for
  int64_t stack = 0;   // of the Python code that called it, if stacks are taken (bindings/no_gil.h)
};

struct StepRecord {
  int number = 0;
  int64_t start_ns = 0;
  int64_t duration_ns = 0;
};

class Session final : public LaunchListener {
 public:
  // source: "auto", or the one that must be used: "cupti", "cuda events", "cpu clock" or "model".
  // hears_host: what the host did is recorded too, wants_shapes: with the shapes of operands.
  explicit Session(std::string source = "auto", bool hears_host = true, bool wants_shapes = false)
      : wanted_(std::move(source)), hears_host_(hears_host), wants_shapes_(wants_shapes) {}
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();  // throws when another session runs
  void stop();   // assigns what was recorded; removes the listener in any case

  // Devices are synchronised at both ends of a step, so that a kernel belongs to the step that launched it.
  void begin_step(int number);
  void end_step();

  const std::vector<KernelRecord>& kernels() const { return kernels_; }  // by start, after stop()
  const std::vector<RangeRecord>& ranges() const { return ranges_; }     // on the host's time
  const std::vector<StepRecord>& steps() const { return steps_; }
  const std::vector<HostRecord>& host() const { return host_; }  // by start, the outer before the inner
  int64_t dropped() const { return dropped_; }                   // kernels of GPUs that have no record
  int64_t unfinished() const { return unfinished_; }          // kernels that another thread ran on the CPU at the end
  int64_t without_memory() const { return without_memory_; }  // launches left out, because the others were measured
  const std::string& source() const { return source_; }
  const std::string& reason() const { return reason_; }

  void before(const LaunchRecord& launch) override;
  void after(const LaunchRecord& launch, bool done) override;
  void range(RangeEvent event, const std::string& path) override;
  void scope(bool opened, const OpScope& scope) override;
  void shapes(const OpScope& scope, const std::string& shapes) override;

 private:
  struct Moment {
    int64_t ns = 0;
    int64_t place = 0;  // in the order of the session's events; 0: not yet
  };
  struct Submitted {
    LaunchRecord launch;
    int thread, step;
    Moment start, end;
  };
  struct Span {  // of a range or, without a path, of a step
    std::string path;
    int thread = 0, step = kNoStep;
    Moment start, end;
    const char* ended = "open";
    bool is_older = false;  // than the session
  };
  struct Scope {
    int64_t id;
    OpScope::Kind kind;
    const char* name;
    std::string range;
    int thread, step;
    int64_t stack;
    Moment start, end;
    std::string shapes;
  };

  Moment now() { return {now_ns(), ++heard_}; }
  int this_thread();
  void choose_source();
  bool chooses_model(const DeviceTrace& trace);
  void synchronize();
  void close_range(Span range, Moment end, const char* ended);
  Scope* find_scope(const OpScope& scope);
  void collect_spans(int64_t Moment::*clock);
  KernelRecord& add_own(const Submitted& submitted);
  void collect_host();
  void collect_cpu();
  void collect_meta();
  void collect_devices(const DeviceTrace& trace);
  int step_at(int64_t time_ns) const;

  std::string wanted_, source_, reason_;
  bool hears_host_, wants_shapes_;
  Mutex mutex_{LockOrder::kProfiles};
  bool running_ = false;
  int step_ = kNoStep;
  std::vector<std::thread::id> threads_;
  std::unique_ptr<DeviceTimer> timer_;  // null: no GPU is recorded
  std::set<int> devices_;
  std::vector<Submitted> submitted_;
  std::vector<Span> open_ranges_, closed_ranges_, timed_steps_;
  std::vector<Scope> scopes_;
  int64_t heard_ = 0;
  std::vector<KernelRecord> kernels_;
  std::vector<HostRecord> host_;
  std::vector<RangeRecord> ranges_;
  std::vector<StepRecord> steps_;
  int64_t dropped_ = 0, unfinished_ = 0, without_memory_ = 0;
};

}  // namespace rooflab::profiler
