#include "core/counters.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "core/memory.h"
#include "core/mutex.h"

namespace rooflab {
namespace detail {
std::atomic<int> observers = 0, launch_listeners = 0;
}

// The accesses to a counter that only this file makes.
struct CounterAccess {
  static Counter::Results& results(Counter& counter) { return counter.results_; }
  static void raise_peak(Counter& counter, int64_t held_now) {
    counter.results_.peak_bytes = std::max(counter.results_.peak_bytes, held_now - counter.held_at_start_);
  }
};

namespace {

Mutex mutex(LockOrder::kCounters);  // guards everything below: ops run in several threads
std::vector<Counter*> counters;
std::vector<LaunchListener*> listeners;
std::vector<RangeListener*> range_listeners;
std::atomic<bool> ranges_are_heard{false};
std::atomic<int64_t> launches{0}, replays{0};

void update_observers() {
  detail::observers = static_cast<int>(counters.size() + listeners.size());
  detail::launch_listeners = static_cast<int>(listeners.size());
}

// Applies `add` to the totals of every counter, to the op's counts and to those of every open range.
template <class Add>
void add_to_counters(const std::string& op, const std::string& range, Add add) {
  for (Counter* counter : counters) {
    Counter::Results& results = CounterAccess::results(*counter);
    add(results.total);
    if (!op.empty()) add(results.by_op[op]);
    for (size_t end = range.find('/'); !range.empty(); end = range.find('/', end + 1)) {
      add(results.by_range[range.substr(0, end)]);
      if (end == range.npos) break;
    }
  }
}

void add_cost(Counts& counts, const Cost& cost) {
  counts.macs += cost.macs;
  counts.flops += cost.flops;
  counts.bytes_read += cost.bytes_read;
  counts.bytes_written += cost.bytes_written;
}

void add_call(const CapturedCall& call) {
  add_to_counters(call.op, call.range, [&](Counts& counts) {
    counts.ops += call.is_op;
    add_cost(counts, call.cost);
  });
}

void add_launch(const LaunchRecord& launch, int host_calls) {
  add_to_counters(launch.op, launch.range, [&](Counts& counts) {
    counts.launches += launch.kernels;
    counts.host_calls += host_calls;
  });
}

void tell_before(const LaunchRecord& launch) {
  std::lock_guard lock(mutex);
  for (LaunchListener* listener : listeners) listener->before(launch);
}

void tell_after(const LaunchRecord& launch, bool done) {
  std::lock_guard lock(mutex);
  for (LaunchListener* listener : listeners) listener->after(launch, done);
}

void tell_listeners(const LaunchRecord& launch, const std::function<void()>& submit) {
  tell_before(launch);
  try {
    submit();
  } catch (...) {
    tell_after(launch, false);
    throw;
  }
  tell_after(launch, true);
}

}  // namespace

Counter::~Counter() { stop(); }

Counter::Results Counter::results() const {
  std::lock_guard lock(mutex);
  return results_;
}

void Counter::start() {
  std::lock_guard lock(mutex);
  if (running_)
    throw std::runtime_error("[count] this counter is counting already; make another rl.count() for what is inside");
  results_ = {};
  held_at_start_ = memory::held();
  running_ = true;
  counters.push_back(this);
  update_observers();
}

void Counter::stop() {
  std::lock_guard lock(mutex);
  if (!running_) return;
  running_ = false;
  std::erase(counters, this);
  update_observers();
}

void PrivateCounts::add(const std::string& op, const Cost& cost) {
  add_cost(total, cost);
  add_cost(by_op[op], cost);
}

PrivateCounter::PrivateCounter(bool is_seen) : counts_(std::make_shared<PrivateCounts>()) {
  counts_->is_seen = is_seen;
}

PrivateCounter::~PrivateCounter() {
  if (is_open_here()) end();
}

void PrivateCounter::begin() {
  if (counts_->is_open.exchange(true)) throw std::runtime_error("[_PrivateCount] this counter is counting already");
  counts_->total = {};
  counts_->by_op.clear();
  Mode& own = context().mode;
  Mode mode;
  mode.counter = counts_;
  mode.is_uncounted = !counts_->is_seen;
  mode.streams = own.streams;
  counts_->outer = std::exchange(own, std::move(mode));
}

bool PrivateCounter::is_open_here() const {
  const PrivateCounts* open = current();
  while (open && open != counts_.get()) open = open->outer.counter.get();
  return open;
}

void PrivateCounter::end() {
  if (!counts_->is_open) return;  // with one around it
  if (!is_open_here())
    throw std::runtime_error("[_PrivateCount] this counter has to end in the thread and in the block of its begin");
  while (counts_->is_open) {
    const std::shared_ptr<PrivateCounts> innermost = context().mode.counter;
    context().mode = std::move(innermost->outer);
    innermost->is_open = false;
  }
}

void add_range_listener(RangeListener* listener) {
  std::lock_guard lock(mutex);
  range_listeners.push_back(listener);
  ranges_are_heard = true;
}

void remove_range_listener(RangeListener* listener) {
  std::lock_guard lock(mutex);
  std::erase(range_listeners, listener);
  ranges_are_heard = !range_listeners.empty();
}

void add_listener(LaunchListener* listener) {
  add_range_listener(listener);
  std::lock_guard lock(mutex);
  listeners.push_back(listener);
  update_observers();
}

void remove_listener(LaunchListener* listener) {
  remove_range_listener(listener);
  std::lock_guard lock(mutex);
  std::erase(listeners, listener);
  update_observers();
}

void count_call(const OpScope& scope) {
  if (scope.device().is_meta() && PrivateCounter::current()) {
    PrivateCounter::current()->add(scope.op(), scope.work());
    if (PrivateCounter::hides()) return;
  }
  const CapturedCall call{scope.op(), current_range(), scope.counts_as_op(), scope.work()};
  if (CaptureLog* log = capture_log()) {
    log->calls.push_back(call);
    return;
  }
  std::lock_guard lock(mutex);
  add_call(call);
}

LaunchRecord detail::begin_launch(LaunchRecord::Kind kind, const char* kernel, Device device, Stream stream,
                                  int kernels, int host_calls) {
  const OpScope* call = OpScope::current();
  LaunchRecord record{.kind = kind,
                      .op = current_op(),
                      .kernel = kernel,
                      .device = device,
                      .stream = stream,
                      .kernels = kernels,
                      .cost = call ? call->work() : Cost{},
                      .dtype = call ? call->dtype() : DType::kFloat32,
                      .work = call ? call->work_id() : 0,
                      .range = current_range(),
                      .id = ++launches,
                      .host_calls = host_calls,
                      .replayed = nullptr};
  if (!capture_log()) tell_before(record);
  return record;
}

void detail::end_launch(const LaunchRecord& record, bool done) {
  if (const CaptureLog* log = capture_log()) {
    if (done) log->launches->push_back(record);
    return;
  }
  tell_after(record, done);
  std::lock_guard lock(mutex);
  if (done) add_launch(record, record.host_calls);
}

void replay(const CaptureLog& log, Stream stream, const std::function<void()>& submit) {
  const int64_t number = ++replays;
  if (log.device.is_cpu()) {
    for (size_t i = 0; i < log.cpu_work.size(); ++i) {
      LaunchRecord record = (*log.launches)[i];
      record.id = ++launches;
      record.range = replayed_range(record.range);
      record.replay = number;
      tell_listeners(record, log.cpu_work[i]);
      std::lock_guard lock(mutex);
      add_launch(record, 0);
    }
  } else {
    tell_listeners({.kind = LaunchRecord::kReplay,
                    .op = "graph",
                    .kernel = "graph",
                    .device = log.device,
                    .stream = stream,
                    .kernels = 0,
                    .cost = {},
                    .dtype = DType::kFloat32,
                    .work = 0,
                    .range = current_range(),
                    .id = ++launches,
                    .host_calls = 1,
                    .replayed = log.launches,
                    .replay = number},
                   submit);
  }
  std::lock_guard lock(mutex);
  add_to_counters("graph", current_range(), [](Counts& counts) { ++counts.host_calls; });
  if (!log.device.is_cpu())
    for (LaunchRecord launch : *log.launches) {
      launch.range = replayed_range(launch.range);
      add_launch(launch, 0);
    }
  for (CapturedCall call : log.calls) {
    call.range = replayed_range(call.range);
    add_call(call);
  }
}

void count_allocation(int64_t bytes, int64_t held_now) {
  std::lock_guard lock(mutex);
  add_to_counters(current_op(), current_range(), [&](Counts& counts) {
    ++counts.allocations;
    counts.bytes_allocated += bytes;
  });
  for (Counter* counter : counters) CounterAccess::raise_peak(*counter, held_now);
}

void detail::tell_scope(bool opened, const OpScope& scope) {
  if (PrivateCounter::hides()) return;
  std::lock_guard lock(mutex);
  for (LaunchListener* listener : listeners) listener->scope(opened, scope);
}

void notify_shapes(const OpScope& scope, const std::string& shapes) {
  if (PrivateCounter::hides()) return;
  std::lock_guard lock(mutex);
  for (LaunchListener* listener : listeners) listener->shapes(scope, shapes);
}

void notify_range(RangeEvent event) {
  if (!ranges_are_heard.load(std::memory_order_relaxed) || PrivateCounter::hides()) [[likely]]
    return;
  std::lock_guard lock(mutex);
  for (RangeListener* listener : range_listeners) listener->range(event, current_range());
}

}  // namespace rooflab
