#include "profiler/session.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/range.h"

namespace rooflab::profiler {
namespace {

Session* running_session = nullptr;
constexpr const char* kEndOfStep = "end of step";  // the wait for the GPUs

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

template <class Record>
bool outer_first(const Record& a, const Record& b) {
  return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
}

}  // namespace

Session::~Session() {
  try {
    stop();
  } catch (...) {  // the device failed; what it recorded is lost with it
  }
}

void Session::choose_source() {
  RL_CHECK(wanted_ == "auto" || wanted_ == "cupti" || wanted_ == "cuda events" || wanted_ == "cpu clock" ||
               wanted_ == "model",
           "profile", "source: expected auto, cupti, cuda events, cpu clock or model, got \"", wanted_, "\"");
  if (wanted_ == "model") return;
  const bool any = wanted_ == "auto";
  if (!cuda::is_available() || wanted_ == "cpu clock") {
    if (!any && wanted_ != "cpu clock") throw CudaError(message("[profile] ", cuda::unavailable()));
    source_ = "cpu clock";
    reason_ = any ? cuda::unavailable() : "the caller asked for it";
    return;
  }
  std::string why = "the caller asked for it";
  if (wanted_ != "cuda events") timer_ = start_cupti_timer(why);
  if (timer_) {
    source_ = "cupti";
    reason_ = "CUPTI sees every kernel of this process, those of other libraries too";
    return;
  }
  if (wanted_ == "cupti") throw CudaError(message("[profile] ", why));
  timer_ = start_event_timer();
  source_ = "cuda events";
  reason_ = why + "; CUDA events around rooflab's own launches do not see kernels of other libraries";
}

void Session::start() {
  if (running_session) throw std::runtime_error("[profile] a profile is running already: profiles do not nest");
  choose_source();
  kernels_.clear(), ranges_.clear(), steps_.clear(), submitted_.clear(), devices_.clear();
  open_ranges_.clear(), closed_ranges_.clear(), timed_steps_.clear(), scopes_.clear(), host_.clear();
  threads_ = {std::this_thread::get_id()};
  dropped_ = heard_ = 0;
  step_ = kNoStep;
  const std::string& path = current_range();
  for (size_t end = path.find('/'); !path.empty(); end = path.find('/', end + 1)) {
    open_ranges_.push_back({path.substr(0, end), 0, kNoStep, now(), {}, "open", true});
    if (end == path.npos) break;
  }
  if (timer_) devices_.insert(0);
  add_listener(this);
  shapes_are_wanted = wants_shapes_;
  running_session = this;
  running_ = true;
}

void Session::stop() {
  if (!running_) return;
  running_ = false;
  running_session = nullptr;
  shapes_are_wanted = false;
  remove_listener(this);
  for (Span& range : open_ranges_)  // nobody is left to close what was opened inside
    if (!range.is_older) range.ended = "left open";
  const std::unique_ptr<DeviceTimer> timer = std::move(timer_);
  if (step_ != kNoStep) end_step();
  const bool is_model =
      wanted_ == "model" || (wanted_ == "auto" && std::any_of(submitted_.begin(), submitted_.end(),
                                                              [](const auto& s) { return s.launch.device.is_meta(); }));
  collect_spans(is_model ? &Moment::place : &Moment::ns);
  synchronize();
  const DeviceTrace trace = timer ? timer->stop() : DeviceTrace{};
  if (is_model) {
    collect_meta();
  } else {
    const bool gpus_worked = !trace.records.empty() || trace.dropped > 0;
    if (!gpus_worked) std::erase_if(scopes_, [](const Scope& scope) { return scope.name == kEndOfStep; });
    collect_host();
    collect_cpu();
    collect_devices(trace);
  }
  std::stable_sort(kernels_.begin(), kernels_.end(),
                   [](const KernelRecord& a, const KernelRecord& b) { return a.start_ns < b.start_ns; });
  std::stable_sort(ranges_.begin(), ranges_.end(), outer_first<RangeRecord>);
}

void Session::synchronize() {
  for (int device : devices_) cuda::synchronize(device);
}

void Session::begin_step(int number) {
  synchronize();
  std::lock_guard lock(mutex_);
  step_ = number;
  if (timer_) timer_->enter_step(number);
  const Moment start = now();
  for (Span& range : open_ranges_) range.start = start;
  timed_steps_.push_back({"", 0, number, start, {}});
}

void Session::end_step() {
  if (step_ == kNoStep) return;
  const int64_t waits_from = now_ns();
  synchronize();
  std::lock_guard lock(mutex_);
  const Moment end = now();
  if (hears_host_ && !devices_.empty())
    scopes_.push_back({0, OpScope::kWait, kEndOfStep, "", 0, step_, 0, {waits_from, heard_}, end, ""});
  timed_steps_.back().end = end;
  for (const Span& range : open_ranges_) close_range(range, end, range.ended);
  step_ = kNoStep;
  if (timer_) timer_->enter_step(kNoStep);
}

void Session::close_range(Span range, Moment end, const char* ended) {
  if (step_ == kNoStep) return;
  range.ended = ended;
  range.step = step_;
  range.end = end;
  closed_ranges_.push_back(std::move(range));
}

void Session::collect_spans(int64_t Moment::*clock) {
  for (const Span& step : timed_steps_)
    steps_.push_back({step.step, step.start.*clock, step.end.*clock - step.start.*clock});
  for (const Span& range : closed_ranges_)
    ranges_.push_back(
        {range.path, range.thread, range.step, range.start.*clock, range.end.*clock - range.start.*clock, range.ended});
}

int Session::this_thread() {
  const auto found = std::find(threads_.begin(), threads_.end(), std::this_thread::get_id());
  const int number = static_cast<int>(found - threads_.begin());
  if (found == threads_.end()) threads_.push_back(std::this_thread::get_id());
  return number;
}

void Session::range(RangeEvent event, const std::string& path) {
  std::lock_guard lock(mutex_);
  const int thread = this_thread();
  if (event == RangeEvent::kOpened) {
    open_ranges_.push_back({path, thread, kNoStep, now(), {}});
    return;
  }
  for (size_t i = open_ranges_.size(); i-- > 0;) {
    if (open_ranges_[i].thread != thread || open_ranges_[i].path != path) continue;
    const char* ended = event == RangeEvent::kFailed     ? "by an exception"
                        : event == RangeEvent::kLeftOpen ? "left open"
                                                         : "closed";
    close_range(open_ranges_[i], now(), ended);
    open_ranges_.erase(open_ranges_.begin() + static_cast<int64_t>(i));
    return;
  }
}

void Session::scope(bool opened, const OpScope& scope) {
  if (!hears_host_) return;
  std::lock_guard lock(mutex_);
  if (step_ == kNoStep) return;
  if (opened) {
    scopes_.push_back(
        {scope.id(), scope.kind(), scope.op(), current_range(), this_thread(), step_, context().stack, now(), {}, ""});
  } else if (Scope* known = find_scope(scope)) {
    known->end = now();
  }
}

void Session::shapes(const OpScope& scope, const std::string& shapes) {
  std::lock_guard lock(mutex_);
  if (Scope* known = find_scope(scope)) known->shapes = shapes;
}

// Null if it was opened outside of the step.
Session::Scope* Session::find_scope(const OpScope& scope) {
  for (size_t i = scopes_.size(); i-- > 0 && scopes_[i].step == step_;)
    if (scopes_[i].id == scope.id()) return &scopes_[i];
  return nullptr;
}

void Session::before(const LaunchRecord& launch) {
  std::lock_guard lock(mutex_);
  if (step_ == kNoStep) return;
  submitted_.push_back({launch, this_thread(), step_, {}, {}});
  if (launch.device.is_cuda() && timer_) {
    devices_.insert(launch.device.index);
    try {
      timer_->before(launch);
    } catch (const CudaError&) {  // counted as dropped, because it will have no record
    }
  }
  submitted_.back().start = now();
}

void Session::after(const LaunchRecord& launch, bool done) {
  const int64_t end_ns = now_ns();
  std::lock_guard lock(mutex_);
  auto submitted = submitted_.rbegin();  // other threads may have submitted since
  while (submitted != submitted_.rend() && submitted->launch.id != launch.id) ++submitted;
  if (submitted == submitted_.rend()) return;
  submitted->end = {end_ns, ++heard_};
  if (launch.device.is_cuda() && timer_) {
    try {
      timer_->after(launch);
    } catch (const CudaError&) {
    }
  }
  if (!done) submitted_.erase(std::next(submitted).base());
}

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
  kernel.cost = launch.cost;
  kernel.dtype = launch.dtype;
  return kernel;
}

void Session::collect_host() {
  static constexpr const char* kKinds[] = {"op", "part", "wait"};  // by OpScope::Kind
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
  std::stable_sort(host_.begin(), host_.end(), outer_first<HostRecord>);
}

void Session::collect_cpu() {
  for (const Submitted& submitted : submitted_) {
    if (!submitted.launch.device.is_cpu() || submitted.end.place == 0) continue;  // 0: another thread runs it still
    KernelRecord& kernel = add_own(submitted);
    kernel.start_ns = submitted.start.ns;
    kernel.duration_ns = submitted.end.ns - submitted.start.ns;
  }
}

void Session::collect_meta() {
  source_ = "model";
  reason_ = "nothing runs on a device without memory";
  int64_t left_out = 0;
  // For each call: the record that carries its cost, and whether that is a kernel.
  std::unordered_map<int64_t, std::pair<size_t, bool>> bearers;
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
    const bool is_kernel = launch.kind == LaunchRecord::kKernel;
    auto& [bearer, bears_as_kernel] = bearers.try_emplace(launch.call, kernels_.size() - 1, is_kernel).first->second;
    if (bearer == kernels_.size() - 1) continue;
    if (is_kernel && !bears_as_kernel) {  // a fill came first
      kernels_[bearer].cost = Cost{};
      bearer = kernels_.size() - 1, bears_as_kernel = true;
    } else {
      kernel.cost = Cost{};
    }
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
  std::unordered_map<std::string, size_t> longest;  // the longest kernel of each call, which carries the call's cost

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
    std::string call;
    if (found != launches.end()) {
      const LaunchRecord& submission = found->second.submitted->launch;
      launch = &captured_launch(submission, found->second.seen++);
      const int64_t replay = submission.id == launch->id ? 0 : submission.id;
      call = message(replay, ":", launch->call);
      int64_t& end_ns = ends[{record.device.index, launch->stream.handle, replay}];
      kernel.start_ns = std::min(std::max(record.start_ns, end_ns), record.end_ns);
      end_ns = std::max(end_ns, record.end_ns);
      kernel.thread = found->second.submitted->thread;
      kernel.step = found->second.submitted->step;
      if (kernel.name.empty()) kernel.name = launch->kernel;
      kernel.op = launch->op;
      kernel.kernel = launch->kernel;
      kernel.range = launch->range;
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
    if (!launch) continue;
    const auto [at, is_first] = longest.try_emplace(call, kernels_.size() - 1);
    if (is_first || kernels_.back().duration_ns > kernels_[at->second].duration_ns) {
      kernels_[at->second].cost = Cost{};
      at->second = kernels_.size() - 1;
      kernels_.back().cost = launch->cost;
    }
  }

  int64_t missing = 0;  // launches without any record
  for (const auto& [id, launched] : launches) missing += launched.seen == 0 && launched.submitted->launch.kernels > 0;
  dropped_ = std::max(trace.dropped, missing);
}

}  // namespace rooflab::profiler
