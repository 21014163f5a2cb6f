// What tensors hold on each device. Bytes are those that tensors asked for: the same on every device and in every run.
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
int64_t reserved(Device device);   // bytes taken from the system: live blocks, rounded up, and cached memory
int64_t available(Device device);  // bytes that tensors can still get, from the system and the cache, within the limit
// Returns memory that no tensor holds to the system, until at most `keep_bytes` are reserved.
void empty_cache(Device device, int64_t keep_bytes = 0);
// From here on, an allocation that would raise allocated() above `bytes` throws OutOfMemory; none removes the limit.
void set_limit(std::optional<int64_t> bytes, Device device);

struct BlockInfo {
  std::string op;  // the op that allocated it; "" for tensors made by the user
  int64_t bytes;
};
std::vector<BlockInfo> snapshot(Device device);  // every live block, oldest first

// Is told of each block that tensors take and give back while it is added, in one thread at a time. It must not throw,
// allocate or free, and takes only locks that come after LockOrder::kListeners.
struct Listener {
  virtual ~Listener() = default;
  virtual void allocated(const Storage& block) = 0;
  virtual void freed(const Storage& block) = 0;
};
void add_listener(Listener* listener);
void remove_listener(Listener* listener);

// Memory of its own, as for a graph: nobody else may have the memory that replays write. Blocks that are allocated
// while it is the pool of the thread's Mode (core/context.h) come from it, and return to it when anybody frees them. On
// a GPU nothing is returned to the system meanwhile, so that a stream may be captured. When the pool is destroyed,
// replays must be over: the general cache then gets its memory, and later that of blocks that are still alive.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
};

// A stream is destroyed and its work done: memory cached for it goes to the default stream. For core/cuda_runtime.
void adopt(Stream gone, Device device) noexcept;

}  // namespace rooflab::memory
