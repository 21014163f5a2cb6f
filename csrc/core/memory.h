// What tensors hold, on each device. Bytes are what tensors asked for: the same on every device and run.
#pragma once

#include <cstdint>
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
int64_t reserved(Device device);  // bytes taken from the system: live blocks, rounded up, and cached ones
void empty_cache(Device device);  // gives cached blocks back to the system

struct BlockInfo {
  std::string op;  // the op that allocated it; "" for tensors made by the user
  int64_t bytes;
};
std::vector<BlockInfo> snapshot(Device device);  // every live block, oldest first

// Hears of each block that tensors take and give back while it is added. Must not throw.
struct Listener {
  virtual ~Listener() = default;
  virtual void allocated(const Storage& block) = 0;
  virtual void freed(const Storage& block) = 0;
};
void add_listener(Listener* listener);
void remove_listener(Listener* listener);

}  // namespace rooflab::memory
