#include "core/range.h"

#include <atomic>
#include <vector>

#include "core/counters.h"
#include "core/error.h"

namespace rooflab {
namespace {

thread_local OpScope* innermost = nullptr;
std::atomic<int64_t> calls{0};
thread_local std::string range_path;
thread_local std::vector<size_t> range_starts;  // length of the path before each open range

void close_range() {
  notify_range(false);
  range_path.resize(range_starts.back());
  range_starts.pop_back();
}

}  // namespace

OpScope::OpScope(const char* op, Kind kind)
    : op_(op), kind_(kind), id_(calls.fetch_add(1, std::memory_order_relaxed) + 1), outer_(innermost) {
  innermost = this;
}
OpScope::~OpScope() { innermost = outer_; }
OpScope* OpScope::current() { return innermost; }

bool OpScope::counts_as_op() const {
  for (const OpScope* scope = outer_; scope; scope = scope->outer_)
    if (scope->kind_ == kOp) return false;
  return kind_ == kOp;
}

void OpScope::done() const {
  if (detail::observers) count_call(*this);
}

const char* current_op() { return innermost ? innermost->op() : ""; }

const std::string& current_range() { return range_path; }

void push_range(std::string_view name) {
  RL_CHECK(!name.empty() && name.find('/') == name.npos, "range", "name: expected text without '/', got \"", name,
           "\"");
  range_starts.push_back(range_path.size());
  if (!range_path.empty()) range_path += '/';
  range_path += name;
  notify_range(true);
}

void pop_range() {
  RL_CHECK(!range_starts.empty(), "range", "no range is open");
  close_range();
}

RangeScope::RangeScope(std::string_view name) : outside_(range_starts.size()) { push_range(name); }
RangeScope::~RangeScope() {
  while (range_starts.size() > outside_) close_range();
}

}  // namespace rooflab
