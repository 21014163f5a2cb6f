#include "profiler/session.h"

#include <algorithm>
#include <utility>

#include "core/cuda_runtime.h"
#include "core/error.h"
#include "core/range.h"

namespace rooflab::profiler {
namespace {

Session* running_session = nullptr;
constexpr const char* kEndOfStep = "end of step";  // the wait for the GPUs

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
  dropped_ = unfinished_ = without_memory_ = heard_ = 0;
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
  synchronize();
  const DeviceTrace trace = timer ? timer->stop() : DeviceTrace{};
  const bool is_model = chooses_model(trace);
  collect_spans(is_model ? &Moment::place : &Moment::ns);
  if (is_model) {
    collect_meta();
  } else {
    const bool gpus_worked = !trace.records.empty() || trace.dropped > 0;
    if (!gpus_worked) std::erase_if(scopes_, [](const Scope& scope) { return scope.name == kEndOfStep; });
    collect_host();
    std::stable_sort(host_.begin(), host_.end(), outer_first<HostRecord>);
    collect_cpu();
    collect_devices(trace);
  }
  std::stable_sort(kernels_.begin(), kernels_.end(),
                   [](const KernelRecord& a, const KernelRecord& b) { return a.start_ns < b.start_ns; });
  std::stable_sort(ranges_.begin(), ranges_.end(), outer_first<RangeRecord>);
}

// Where kernels were measured they are kept, and launches on devices without memory are left out.
bool Session::chooses_model(const DeviceTrace& trace) {
  if (wanted_ == "model") return true;
  const auto is_measured = [&](const Submitted& s) {
    return s.launch.device.is_cuda() || (s.launch.device.is_cpu() && hears_host_);
  };
  without_memory_ =
      std::count_if(submitted_.begin(), submitted_.end(), [](const Submitted& s) { return s.launch.device.is_meta(); });
  if (wanted_ != "auto" || without_memory_ == 0 || !trace.records.empty() ||
      std::any_of(submitted_.begin(), submitted_.end(), is_measured))
    return false;
  without_memory_ = 0;
  return true;
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
  for (size_t i = scopes_.size(); i-- > 0 && scopes_[i].step == step_;)  // other threads may be in them still
    if (scopes_[i].end.place == 0) scopes_[i].end = end;
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

}  // namespace rooflab::profiler
