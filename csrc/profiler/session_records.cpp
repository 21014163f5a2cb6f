// What a session has heard and what devices have recorded, made into the records that it returns.
#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/range.h"
#include "profiler/session.h"

namespace rooflab::profiler {
namespace {

// What record number `index` of a submission stands for: the submission itself or, for a graph's replay, the launch
// that was captured at that position.
const LaunchRecord& captured_launch(const LaunchRecord& submission, size_t index) {
  if (submission.kind != LaunchRecord::kReplay) return submission;
  for (const LaunchRecord& launch : *submission.replayed) {
    const size_t records = static_cast<size_t>(launch.host_calls);
    if (index < records) return launch;
    index -= records;
  }
  return submission;
}

// Chooses, among the kernels of each piece of work, the one that carries its cost: the first of the largest. A graph's
// replays repeat its work.
class Bearers {
 public:
  explicit Bearers(std::vector<KernelRecord>& kernels) : kernels_(kernels) {}

  // Adds the newest kernel, which belongs to a launch.
  void add(const LaunchRecord& launch, int64_t replay, int64_t size) {
    const size_t newest = kernels_.size() - 1;
    const auto [found, is_first] = bearers_.try_emplace({replay, launch.work}, Bearer{newest, size, 0, {}});
    Bearer& bearer = found->second;
    if (launch.id >= bearer.launch) bearer.launch = launch.id, bearer.cost = launch.cost;  // an op may add to it
    if (!is_first && size > bearer.size) {
      kernels_[bearer.kernel].cost = Cost{};
      bearer.kernel = newest, bearer.size = size;
    }
    kernels_[bearer.kernel].cost = bearer.cost;
  }

 private:
  struct Bearer {
    size_t kernel;
    int64_t size;
    int64_t launch;  // the last one, and its cost
    Cost cost;
  };
  std::vector<KernelRecord>& kernels_;
  std::map<std::pair<int64_t, int64_t>, Bearer> bearers_;  // by replay and work
};

}  // namespace

KernelRecord& Session::add_own(const Submitted& submitted) {
  const LaunchRecord& launch = submitted.launch;
  KernelRecord& kernel = kernels_.emplace_back();
  kernel.name = kernel.kernel = launch.kernel;
  kernel.op = launch.op;
  kernel.range = launch.range;
  kernel.device = launch.device;
  kernel.thread = submitted.thread;
  kernel.id = launch.id;
  kernel.step = submitted.step;
  kernel.dtype = launch.dtype;
  return kernel;
}

void Session::collect_host() {
  static constexpr const char* kKinds[] = {"op", "part", "wait", "part"};  // by OpScope::Kind
  for (const Scope& scope : scopes_) {
    if (scope.end.place == 0) continue;  // another thread is in it still
    host_.push_back({kKinds[scope.kind],
                     scope.name,
                     scope.range,
                     {},
                     scope.thread,
                     scope.step,
                     scope.start.ns,
                     scope.end.ns - scope.start.ns,
                     0,
                     scope.shapes,
                     scope.stack});
  }
  for (const Submitted& submitted : submitted_) {
    if (!hears_host_ || submitted.end.place == 0) continue;
    const LaunchRecord& launch = submitted.launch;
    const char* name = launch.kind == LaunchRecord::kKernel ? "launch"
                       : launch.kind == LaunchRecord::kFill ? "fill"
                       : launch.kind == LaunchRecord::kCopy ? "copy and wait"
                                                            : "launch graph";
    host_.push_back({launch.kind == LaunchRecord::kCopy ? "wait" : "launch", name, launch.range, launch.device,
                     submitted.thread, submitted.step, submitted.start.ns, submitted.end.ns - submitted.start.ns,
                     launch.id, "", 0});
  }
}

void Session::collect_cpu() {
  Bearers bearers(kernels_);
  for (const Submitted& submitted : submitted_) {
    if (!submitted.launch.device.is_cpu()) continue;
    if (submitted.end.place == 0) {  // another thread runs it still
      ++unfinished_;
      continue;
    }
    KernelRecord& kernel = add_own(submitted);
    kernel.start_ns = submitted.start.ns;
    kernel.duration_ns = submitted.end.ns - submitted.start.ns;
    bearers.add(submitted.launch, submitted.launch.replay, kernel.duration_ns);
  }
}

void Session::collect_meta() {
  source_ = "model";
  reason_ = "nothing runs on a device without memory";
  int64_t left_out = 0;
  Bearers bearers(kernels_);
  for (const Submitted& submitted : submitted_) {
    const LaunchRecord& launch = submitted.launch;
    if (!launch.device.is_meta()) {
      ++left_out;
      continue;
    }
    KernelRecord& kernel = add_own(submitted);
    kernel.start_ns = submitted.start.place;
    if (launch.kind == LaunchRecord::kFill) kernel.name = "memset";
    if (launch.kind == LaunchRecord::kCopy) kernel.name = "memcpy";
    bearers.add(launch, 0, launch.kind == LaunchRecord::kKernel ? 1 : 0);  // a kernel rather than a fill
  }
  if (left_out) reason_ += message("; ", left_out, " launches on other devices are left out");
}

int Session::step_at(int64_t time_ns) const {
  for (const StepRecord& step : steps_)
    if (time_ns >= step.start_ns && time_ns <= step.start_ns + step.duration_ns) return step.number;
  return kNoStep;
}

void Session::collect_devices(const DeviceTrace& trace) {
  struct Launched {
    const Submitted* submitted;
    size_t seen = 0;  // of its records
  };
  std::unordered_map<int64_t, Launched> launches;
  for (const Submitted& submitted : submitted_)
    if (submitted.launch.device.is_cuda()) launches[submitted.launch.id] = {&submitted};
  Bearers bearers(kernels_);
  // Of each stream, and of each replay of what was captured from it: when its last kernel ended. One that was launched
  // early waits inside for that; its time begins after the wait.
  std::map<std::tuple<int, void*, int64_t>, int64_t> ends;

  std::vector<DeviceRecord> records = trace.records;
  std::stable_sort(records.begin(), records.end(),
                   [](const DeviceRecord& a, const DeviceRecord& b) { return a.start_ns < b.start_ns; });
  for (const DeviceRecord& record : records) {
    const auto found = launches.find(record.launch);
    KernelRecord kernel;
    kernel.step = record.step == kUnknownStep ? step_at((record.start_ns + record.end_ns) / 2) : record.step;
    kernel.name = record.name;
    kernel.start_ns = record.start_ns;
    const LaunchRecord* launch = nullptr;
    int64_t replay = 0;
    if (found != launches.end()) {
      const LaunchRecord& submission = found->second.submitted->launch;
      launch = &captured_launch(submission, found->second.seen++);
      replay = submission.replay;
      int64_t& end_ns = ends[{record.device.index, launch->stream.handle, replay}];
      kernel.start_ns = std::min(std::max(record.start_ns, end_ns), record.end_ns);
      end_ns = std::max(end_ns, record.end_ns);
      kernel.thread = found->second.submitted->thread;
      kernel.step = found->second.submitted->step;
      if (kernel.name.empty()) kernel.name = launch->kernel;
      kernel.op = launch->op;
      kernel.kernel = launch->kernel;
      kernel.range = replay ? replayed_range(launch->range, submission.range) : launch->range;
      kernel.id = submission.id;
      kernel.dtype = launch->dtype;
    } else {
      kernel.cost.bytes_read = record.bytes_read;
      kernel.cost.bytes_written = record.bytes_written;
    }
    if (kernel.step == kNoStep) continue;
    kernel.device = record.device;
    kernel.stream = record.stream;
    kernel.duration_ns = record.end_ns - kernel.start_ns;
    kernel.grid = record.grid;
    kernel.block = record.block;
    kernel.shared_bytes = record.shared_bytes;
    kernel.registers = record.registers;
    kernels_.push_back(std::move(kernel));
    if (launch) bearers.add(*launch, replay, kernels_.back().duration_ns);
  }

  int64_t missing = 0;  // launches without any record
  for (const auto& [id, launched] : launches) missing += launched.seen == 0 && launched.submitted->launch.kernels > 0;
  dropped_ = std::max(trace.dropped, missing);
}

}  // namespace rooflab::profiler
