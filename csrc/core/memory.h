// What tensors hold, on each device. Bytes are what tensors asked for: the same on every device and run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/device.h"

namespace rooflab {
class Storage;
}

namespace rooflab::memory {

int64_t held();                    // bytes in live tensors, all devices
int64_t allocated(Device device);  // bytes in live tensors of the device
int64_t peak(Device device);       // highest allocated() since reset_peak()
void reset_peak(Device device);
int64_t reserved(Device device);   // bytes taken from the system: live blocks, rounded up, and what is kept for reuse
int64_t available(Device device);  // bytes that tensors can still get: of the system, of what is kept, within the limit
// Gives memory that no tensor holds back to the system, until at most `keep_bytes` are reserved.
void empty_cache(Device device, int64_t keep_bytes = 0);
// From here on an allocation that would bring allocated() above `bytes` throws OutOfMemory; none lifts that.
void set_limit(std::optional<int64_t> bytes, Device device);

struct BlockInfo {
  std::string op;  // the op that allocated it; "" for tensors made by the user
  int64_t bytes;
};
std::vector<BlockInfo> snapshot(Device device);  // every live block, oldest first

// Hears of each block that tensors take and give back while it is added, in one thread at a time. Must not throw, and
// may take no lock under which somebody allocates or frees (the order of locks: allocator.cpp).
struct Listener {
  virtual ~Listener() = default;
  virtual void allocated(const Storage& block) = 0;
  virtual void freed(const Storage& block) = 0;
};
void add_listener(Listener* listener);
void remove_listener(Listener* listener);

// Memory of its own, as for a graph: what replays write must be nobody else's. Blocks that are taken while the pool is
// entered come from it, and go back to it when they are freed, by anybody. Replays must be over when it is destroyed:
// the general cache gets its memory then, and that of blocks still alive later.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
};

// This thread takes memory from `pool` while the scope lives. On a GPU nothing is given back to the system meanwhile,
// so that a stream may be captured inside; a capture ends before its scope.
class PoolScope {
 public:
  explicit PoolScope(const Pool& pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  const Pool* outer_;
};

// What this thread allocates on devices without memory while the scope lives is not counted: nothing would hold it.
class UncountedScope {
 public:
  UncountedScope();
  ~UncountedScope();
  UncountedScope(const UncountedScope&) = delete;
  UncountedScope& operator=(const UncountedScope&) = delete;
};

// A stream is destroyed and its work is done: what is kept for it goes to the default stream. For core/cuda_runtime.
void adopt(Stream gone, Device device) noexcept;

}  // namespace rooflab::memory
