#include "core/counters.h"

#include <algorithm>
#include <vector>

#include "core/memory.h"
#include "core/range.h"

namespace rooflab {
namespace detail {
int observers = 0;
}

namespace {

std::vector<Counter*> counters;
std::vector<LaunchListener*> listeners;
int64_t launches = 0;

void update_observers() { detail::observers = static_cast<int>(counters.size() + listeners.size()); }

// Applies `add` to the counter's totals, to the op's and to those of every open range.
template <class Add>
void add_to(Counter& counter, const char* op, const std::string& range, Add add) {
  add(counter.total);
  if (*op) add(counter.by_op[op]);
  for (size_t end = range.find('/'); !range.empty(); end = range.find('/', end + 1)) {
    add(counter.by_range[range.substr(0, end)]);
    if (end == range.npos) break;
  }
}

}  // namespace

Counter::~Counter() { stop(); }

void Counter::start() {
  if (running_) return;
  total = {};
  by_op.clear();
  by_range.clear();
  peak_bytes = 0;
  held_at_start_ = memory::held();
  running_ = true;
  counters.push_back(this);
  update_observers();
}

void Counter::stop() {
  if (!running_) return;
  running_ = false;
  std::erase(counters, this);
  update_observers();
}

void add_listener(LaunchListener* listener) {
  listeners.push_back(listener);
  update_observers();
}

void remove_listener(LaunchListener* listener) {
  std::erase(listeners, listener);
  update_observers();
}

LaunchRecord detail::begin_launch(const char* op, const char* kernel, Device device, Stream stream, const Cost& cost) {
  LaunchRecord record{op, kernel, device, stream, cost, current_range(), ++launches};
  for (LaunchListener* listener : listeners) listener->before(record);
  return record;
}

void detail::end_launch(const LaunchRecord& record, bool done) {
  for (LaunchListener* listener : listeners) listener->after(record, done);
  if (!done) return;
  for (Counter* counter : counters)
    add_to(*counter, record.op, record.range, [&](Counts& counts) {
      ++counts.launches;
      ++counts.host_calls;
      counts.macs += record.cost.macs;
      counts.flops += record.cost.flops;
      counts.bytes_read += record.cost.bytes_read;
      counts.bytes_written += record.cost.bytes_written;
    });
}

void count_allocation(int64_t bytes, int64_t held_now) {
  for (Counter* counter : counters) {
    add_to(*counter, current_op(), current_range(), [&](Counts& counts) {
      ++counts.allocations;
      counts.bytes_allocated += bytes;
    });
    counter->peak_bytes = std::max(counter->peak_bytes, held_now - counter->held_at_start_);
  }
}

void notify_range(bool opened) {
  for (LaunchListener* listener : listeners) listener->range(opened, current_range());
}

}  // namespace rooflab
