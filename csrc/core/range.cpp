#include "core/range.h"

#include <vector>

#include "core/counters.h"
#include "core/error.h"

namespace rooflab {
namespace {

thread_local const char* op_name = "";
thread_local std::string range_path;
thread_local std::vector<size_t> range_starts;  // length of the path before each open range

}  // namespace

const char* current_op() { return op_name; }
OpScope::OpScope(const char* op) : previous_(op_name) { op_name = op; }
OpScope::~OpScope() { op_name = previous_; }

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
  notify_range(false);
  range_path.resize(range_starts.back());
  range_starts.pop_back();
}

}  // namespace rooflab
