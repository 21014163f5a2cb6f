// Names for what is running: the op, for allocation and errors; the user's ranges, for counters and profiles.
#pragma once

#include <string>
#include <string_view>

namespace rooflab {

// The op that is running in this thread; "" outside any. Names must be literals.
const char* current_op();

// Names the op while it lives. The first line of every public op.
class OpScope {
 public:
  explicit OpScope(const char* op);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

 private:
  const char* previous_;
};

// The ranges open in this thread, outermost first, joined by '/'; "" when none is.
const std::string& current_range();
void push_range(std::string_view name);
void pop_range();

}  // namespace rooflab
