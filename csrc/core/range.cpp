#include "core/range.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/counters.h"
#include "core/error.h"

namespace rooflab {
namespace {

thread_local OpScope* innermost = nullptr;
std::atomic<int64_t> calls{0}, ranges{0};

struct OpenRange {
  int64_t number;
  size_t start, end;  // of its name in the path
};
thread_local std::string range_path;
thread_local std::vector<OpenRange> open_ranges;  // outermost first

auto find_range(int64_t number) {
  return std::find_if(open_ranges.begin(), open_ranges.end(), [&](const OpenRange& r) { return r.number == number; });
}

// Closes the range and everything that is open inside it.
void close_range(int64_t number) {
  for (bool is_own = false; !is_own;) {
    notify_range(false);
    is_own = open_ranges.back().number == number;
    range_path.resize(open_ranges.back().start - (open_ranges.size() > 1));
    open_ranges.pop_back();
  }
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

int64_t push_range(std::string_view name) {
  RL_CHECK(!name.empty() && name.find('/') == name.npos, "range", "name: expected text without '/', got \"", name,
           "\"");
  const size_t start = range_path.size() + !range_path.empty();
  if (!range_path.empty()) range_path += '/';
  range_path += name;
  open_ranges.push_back({++ranges, start, range_path.size()});
  notify_range(true);
  return open_ranges.back().number;
}

bool is_open(int64_t range) { return find_range(range) != open_ranges.end(); }

std::string pop_range(int64_t range) {
  std::string inside = range_path.substr(std::min(find_range(range)->end + 1, range_path.size()));
  close_range(range);
  return inside;
}

RangeScope::RangeScope(std::string_view name) : range_(push_range(name)) {}
RangeScope::~RangeScope() {
  if (is_open(range_)) close_range(range_);
}

}  // namespace rooflab
