// Names for what is running: the op, for counts, allocations and errors; and the user's ranges, for counters, profiles
// and Nsight Systems.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/cost.h"
#include "core/device.h"
#include "core/dtype.h"

namespace rooflab {

// One call of an op in this thread, from the op's first line to its end. Names must be literals. Scopes nest: what an
// op calls inside belongs to it, and does not count as an op of its own.
class OpScope {
 public:
  enum Kind {
    kOp,
    kName,  // names what runs inside, such as a transfer or a backward rule, and is not counted as an op
    kWait,  // the host waits for a device; no op either
    kLook,  // looks at arguments. Its launches count, but neither ops nor work: elsewhere the host may look
  };
  explicit OpScope(const char* op, Kind kind = kOp);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  // Everything that is submitted from here on belongs to this work, which is computed in `dtype`.
  // A call may do several such pieces of work, one after another.
  void begin(const Cost& work, DType dtype, Device device);
  void reads_more(int64_t bytes) { work_.bytes_read += looks_ ? 0 : bytes; }
  // Counts the op and its work. A call that throws never gets here.
  void done() const;

  const char* op() const { return op_; }
  Kind kind() const { return kind_; }
  const Cost& work() const { return work_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }     // that the work is done on
  int64_t id() const { return id_; }            // number of the call in this process, from 1
  int64_t work_id() const { return work_id_; }  // number of the piece of work, unique in this process
  bool counts_as_op() const;                    // it is an op, and not inside another op
  static OpScope* current();                    // the innermost one; null outside every op

 private:
  const char* op_;
  Kind kind_;
  int64_t id_, work_id_;
  OpScope* outer_;
  bool looks_;  // it, or one around it, is a kLook
  Cost work_;
  DType dtype_ = DType::kFloat32;
  Device device_;
};

const char* current_op();  // of the innermost scope; "" outside every op

// The ranges open in this thread, outermost first, joined by '/'; "" when none is.
const std::string& current_range();
int64_t push_range(std::string_view name);  // returns the range's number, which is unique in the process
bool is_open(int64_t range);                // in this thread
// Closes an open range and whatever was opened inside and not closed. Returns the path of the latter, or "". An
// exception that leaves the range has failed it.
std::string pop_range(int64_t range, bool failed = false);
// Where a graph's replay belongs: the current range stands before the captured one, which may begin with it already.
std::string replayed_range(const std::string& captured, const std::string& current = current_range());

// A range that is open while this object lives. Whatever was opened inside and not closed ends with it.
class RangeScope {
 public:
  explicit RangeScope(std::string_view name);
  ~RangeScope();
  RangeScope(const RangeScope&) = delete;
  RangeScope& operator=(const RangeScope&) = delete;

 private:
  int64_t range_;
};

}  // namespace rooflab
