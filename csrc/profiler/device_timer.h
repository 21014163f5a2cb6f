// How the times of GPU kernels are measured: by CUPTI, which sees every kernel of the process, or by a pair of CUDA
// events around each of rooflab's own launches. cupti_timer.cpp implements start_cupti_timer() in builds that have
// CUPTI's headers, no_cupti.cpp in all others.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/counters.h"

namespace rooflab::profiler {

// The clock of every time in a profile.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int kNoStep = -1;       // outside every recorded step
constexpr int kUnknownStep = -2;  // submitted by another thread: its start time tells the step

// One kernel, copy or memset as the device ran it.
struct DeviceRecord {
  std::string name;  // as shown to readers; "" when only the launch is known
  Device device;
  int64_t stream = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  std::array<int32_t, 3> grid{}, block{};
  int64_t shared_bytes = 0;
  int32_t registers = 0;
  int64_t bytes_read = 0, bytes_written = 0;  // of a copy or memset
  int64_t launch = 0;                         // LaunchRecord::id; 0: not launched by rooflab
  int step = kUnknownStep;                    // used if launch is 0
};

struct DeviceTrace {
  std::vector<DeviceRecord> records;
  int64_t dropped = 0;  // records that are known to be missing
};

class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual void before(const LaunchRecord& launch) = 0;
  virtual void after(const LaunchRecord& launch) = 0;
  virtual void enter_step(int step) = 0;  // kNoStep: what follows is not recorded
  virtual DeviceTrace stop() = 0;         // the devices must be idle by then
};

// Null if CUPTI cannot be used; `why` then gives the reason, a sentence without its full stop.
std::unique_ptr<DeviceTimer> start_cupti_timer(std::string& why);
std::unique_ptr<DeviceTimer> start_event_timer();

}  // namespace rooflab::profiler
