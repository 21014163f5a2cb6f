#include "core/range.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "core/context.h"
#include "core/counters.h"
#include "core/error.h"

namespace rooflab {
namespace {

std::atomic<int64_t> calls{0}, ranges{0};  // calls: with each piece of their work

auto find_range(int64_t number) {
  const std::vector<OpenRange>& open_ranges = context().open_ranges;
  return std::find_if(open_ranges.begin(), open_ranges.end(), [&](const OpenRange& r) { return r.number == number; });
}

// Closes the range and everything that is open inside it.
void close_range(int64_t number, bool failed = false) {
  std::vector<OpenRange>& open_ranges = context().open_ranges;
  for (bool is_own = false; !is_own;) {
    is_own = open_ranges.back().number == number;
    notify_range(!is_own ? RangeEvent::kLeftOpen : failed ? RangeEvent::kFailed : RangeEvent::kClosed);
    context().range_path.resize(open_ranges.back().start - (open_ranges.size() > 1));
    open_ranges.pop_back();
  }
}

}  // namespace

OpScope::OpScope(const char* op, Kind kind)
    : op_(op),
      kind_(kind),
      id_(calls.fetch_add(1, std::memory_order_relaxed) + 1),
      work_id_(id_),
      outer_(context().op),
      looks_(kind == kLook || (outer_ && outer_->looks_)) {
  context().op = this;
  notify_scope(true, *this);
}
OpScope::~OpScope() {
  notify_scope(false, *this);
  context().op = outer_;
}
OpScope* OpScope::current() { return context().op; }

void OpScope::begin(const Cost& work, DType dtype, Device device) {
  work_id_ = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  work_ = looks_ ? Cost{} : work;
  dtype_ = dtype;
  device_ = device;
}

bool OpScope::counts_as_op() const {
  for (const OpScope* scope = outer_; scope; scope = scope->outer_)
    if (scope->kind_ == kOp) return false;
  return kind_ == kOp;
}

void OpScope::done() const {
  if (looks_) return;
  const Mode& mode = context().mode;
  if (detail::observers || mode.log || mode.counter) count_call(*this);
}

const char* current_op() {
  const OpScope* innermost = context().op;
  return innermost ? innermost->op() : "";
}

const std::string& current_range() { return context().range_path; }

int64_t push_range(std::string_view name) {
  RL_CHECK(!name.empty() && name.find('/') == name.npos, "range", "name: expected text without '/', got \"", name,
           "\"");
  std::string& range_path = context().range_path;
  const size_t start = range_path.size() + !range_path.empty();
  if (!range_path.empty()) range_path += '/';
  range_path += name;
  const int64_t number = ++ranges;
  context().open_ranges.push_back({number, start, range_path.size()});
  notify_range(RangeEvent::kOpened);
  return number;
}

bool is_open(int64_t range) { return find_range(range) != context().open_ranges.end(); }

std::string pop_range(int64_t range, bool failed) {
  const std::string& range_path = context().range_path;
  std::string inside = range_path.substr(std::min(find_range(range)->end + 1, range_path.size()));
  close_range(range, failed);
  return inside;
}

std::string replayed_range(const std::string& captured, const std::string& current) {
  if (current.empty() || captured == current || captured.starts_with(current + '/')) return captured;
  return captured.empty() ? current : current + '/' + captured;
}

RangeScope::RangeScope(std::string_view name) : range_(push_range(name)) {}
RangeScope::~RangeScope() {
  if (is_open(range_)) close_range(range_);
}

}  // namespace rooflab
