// A pair of CUDA events around each launch. It sees only rooflab's own launches, and a launch of several kernels is one
// record.
#include <map>

#include "core/cuda_runtime.h"
#include "core/error.h"
#include "profiler/device_timer.h"

namespace rooflab::profiler {
namespace {

class EventTimer final : public DeviceTimer {
 public:
  void before(const LaunchRecord& launch) override {
    anchor(launch);
    Bracket& bracket = brackets_.emplace_back(launch.id, launch.device, launch.stream);
    bracket.begin.record(launch.stream);
  }

  void after(const LaunchRecord& launch) override {
    for (auto bracket = brackets_.rbegin(); bracket != brackets_.rend(); ++bracket) {
      if (bracket->launch != launch.id) continue;
      return bracket->end.record(launch.stream);
    }
  }

  void enter_step(int) override {}

  DeviceTrace stop() override {
    DeviceTrace trace;
    for (const Bracket& bracket : brackets_) {
      try {
        trace.records.push_back(read(bracket));
      } catch (const CudaError&) {  // never recorded, or captured into a graph
        ++trace.dropped;
      }
    }
    brackets_.clear();
    return trace;
  }

 private:
  struct Anchor {
    explicit Anchor(int device) : event(device) {}
    cuda::Event event;
    int64_t host_ns = 0;
  };
  struct Bracket {
    Bracket(int64_t launch, Device device, Stream stream)
        : launch(launch), device(device), stream(stream), begin(device.index), end(device.index) {}
    int64_t launch;
    Device device;
    Stream stream;
    cuda::Event begin, end;
  };

  static int64_t nanoseconds(const cuda::Event& from, const cuda::Event& to) {
    return static_cast<int64_t>(from.elapsed_ms(to) * 1e6);
  }

  DeviceRecord read(const Bracket& bracket) const {
    const Anchor& anchor = anchors_.at(bracket.device.index);
    DeviceRecord record;
    record.device = bracket.device;
    record.stream = reinterpret_cast<int64_t>(bracket.stream.handle);
    record.start_ns = anchor.host_ns + nanoseconds(anchor.event, bracket.begin);
    record.end_ns = record.start_ns + nanoseconds(bracket.begin, bracket.end);
    record.launch = bracket.launch;
    return record;
  }

  // Relates the device's time to the host's, once per device.
  void anchor(const LaunchRecord& launch) {
    if (anchors_.contains(launch.device.index)) return;
    cuda::synchronize(launch.stream, launch.device.index);
    Anchor& anchor = anchors_.try_emplace(launch.device.index, launch.device.index).first->second;
    anchor.event.record(launch.stream);
    anchor.event.synchronize();
    anchor.host_ns = now_ns();
  }

  std::map<int, Anchor> anchors_;
  std::vector<Bracket> brackets_;
};

}  // namespace

std::unique_ptr<DeviceTimer> start_event_timer() { return std::make_unique<EventTimer>(); }

}  // namespace rooflab::profiler
