// CUPTI's activity records: every kernel, copy and memset of the process, with the launch that submitted each of ours.
//
// Before a launch its number is pushed as an external correlation id. For each CUDA call made until it is popped, CUPTI
// writes a record that links that number to the call's own correlation id, which the kernel's record has as well. Below
// it on the stack is the number of the step, for kernels that other libraries launch. Records arrive in buffers, from
// CUPTI's thread or from a flush, at most a few at a time.
#include <cupti.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "core/dynamic_library.h"
#include "core/error.h"
#include "core/mutex.h"
#include "profiler/device_timer.h"
#include "profiler/kernel_name.h"

namespace rooflab::profiler {
namespace {

constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMSET};
constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;  // PyTorch uses 0 and 1
constexpr uint64_t kStepBit = uint64_t{1} << 62;
constexpr size_t kBufferBytes = size_t{4} << 20;

// The CUPTI functions used, looked up in the library at first use.
struct Cupti {
  template <class F>
  static F* load(const char* name) {
    return cupti().symbol<F>(name);
  }
#define ROOFLAB_CUPTI(function) decltype(::function)* function = load<decltype(::function)>(#function)
  ROOFLAB_CUPTI(cuptiActivityRegisterCallbacks);
  ROOFLAB_CUPTI(cuptiActivityRegisterTimestampCallback);
  ROOFLAB_CUPTI(cuptiActivityEnable);
  ROOFLAB_CUPTI(cuptiActivityDisable);
  ROOFLAB_CUPTI(cuptiActivityFlushAll);
  ROOFLAB_CUPTI(cuptiActivityGetNextRecord);
  ROOFLAB_CUPTI(cuptiActivityGetNumDroppedRecords);
  ROOFLAB_CUPTI(cuptiActivityPushExternalCorrelationId);
  ROOFLAB_CUPTI(cuptiActivityPopExternalCorrelationId);
  ROOFLAB_CUPTI(cuptiGetResultString);
#undef ROOFLAB_CUPTI
};

const Cupti& api() {
  static const Cupti functions;
  return functions;
}

// What the buffers held so far. Never destroyed: CUPTI may return a buffer while the process ends.
struct Inbox {
  Mutex mutex{LockOrder::kTables};
  bool open = false;
  DeviceTrace trace;
  std::vector<uint32_t> correlations;                // of each record of the trace
  std::unordered_map<uint32_t, uint64_t> externals;  // correlation id -> what was pushed
  std::unordered_set<uint32_t> calls;                // correlation ids of the CUDA calls that were seen
};

Inbox& inbox() {
  static Inbox* const only = new Inbox;
  return *only;
}

const char* copy_name(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "memcpy HtoH";
    default: return "memcpy";
  }
}

// The fields that all kinds of records have. A record without times was not finished and counts as dropped.
template <class Activity>
DeviceRecord* add(Inbox& to, const Activity& activity, std::string name) {
  if (activity.start == 0 || activity.end < activity.start) {
    ++to.trace.dropped;
    return nullptr;
  }
  DeviceRecord& record = to.trace.records.emplace_back();
  to.correlations.push_back(activity.correlationId);
  record.name = std::move(name);
  record.device = {Device::Type::kCuda, static_cast<int8_t>(activity.deviceId)};
  record.stream = activity.streamId;
  record.start_ns = static_cast<int64_t>(activity.start);
  record.end_ns = static_cast<int64_t>(activity.end);
  return &record;
}

// Newer libraries only append to these structs of CUDA 12, so one build reads the records of all versions.
void read(const CUpti_Activity* activity, Inbox& to) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& link = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(activity);
      if (link.externalKind == kOurs) to.externals[link.correlationId] = link.externalId;
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      to.calls.insert(reinterpret_cast<const CUpti_ActivityAPI*>(activity)->correlationId);
      break;
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel9*>(activity);
      if (DeviceRecord* record = add(to, kernel, kernel_name(kernel.name))) {
        record->grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
        record->block = {kernel.blockX, kernel.blockY, kernel.blockZ};
        record->shared_bytes = int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory;
        record->registers = kernel.registersPerThread;
      }
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy5*>(activity);
      if (DeviceRecord* record = add(to, copy, copy_name(copy.copyKind)))
        record->bytes_read = record->bytes_written = static_cast<int64_t>(copy.bytes);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = *reinterpret_cast<const CUpti_ActivityMemset4*>(activity);
      if (DeviceRecord* record = add(to, set, "memset")) record->bytes_written = static_cast<int64_t>(set.bytes);
      break;
    }
    default: break;
  }
}

// The three callbacks run on CUPTI's stack, so no exception may leave them.
uint64_t CUPTIAPI timestamp() { return static_cast<uint64_t>(now_ns()); }

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* bytes, size_t* max_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *max_records = 0;
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid_bytes) {
  const std::unique_ptr<uint8_t, void (*)(void*)> owner(buffer, std::free);
  Inbox& to = inbox();
  std::lock_guard lock(to.mutex);
  if (!to.open || valid_bytes == 0) return;
  CUpti_Activity* activity = nullptr;
  while (api().cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) {
    try {
      read(activity, to);
    } catch (...) {  // out of memory
      ++to.trace.dropped;
    }
  }
}

class CuptiTimer final : public DeviceTimer {
 public:
  explicit CuptiTimer(const Cupti& cupti) : cupti_(cupti) {}
  ~CuptiTimer() override { close(); }
  CuptiTimer(const CuptiTimer&) = delete;
  CuptiTimer& operator=(const CuptiTimer&) = delete;

  // "", or why CUPTI refused.
  std::string open() {
    {
      Inbox& to = inbox();
      std::lock_guard lock(to.mutex);
      to.trace = {};
      to.correlations.clear();
      to.externals.clear();
      to.calls.clear();
      to.open = true;
    }
    CUptiResult status = cupti_.cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    if (status == CUPTI_SUCCESS) status = cupti_.cuptiActivityRegisterTimestampCallback(timestamp);
    for (CUpti_ActivityKind kind : kKinds) {
      if (status == CUPTI_SUCCESS) status = cupti_.cuptiActivityEnable(kind);
      if (status == CUPTI_SUCCESS) ++enabled_;
    }
    if (status == CUPTI_SUCCESS) {
      size_t dropped_earlier = 0;
      cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped_earlier);  // reading resets it
      push_step(kNoStep);
      return "";
    }
    const char* text = nullptr;
    cupti_.cuptiGetResultString(status, &text);
    return message("CUPTI refused (", text ? text : "unknown error", ")");
  }

  void before(const LaunchRecord& launch) override {
    cupti_.cuptiActivityPushExternalCorrelationId(kOurs, static_cast<uint64_t>(launch.id));
  }
  void after(const LaunchRecord&) override { pop(); }

  void enter_step(int step) override {
    pop();
    push_step(step);
  }

  DeviceTrace stop() override {
    pop();
    const CUptiResult flushed = cupti_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    close();
    size_t dropped = 0;
    cupti_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
    Inbox& from = inbox();
    std::lock_guard lock(from.mutex);
    DeviceTrace trace;
    trace.dropped = from.trace.dropped + static_cast<int64_t>(dropped) + (flushed != CUPTI_SUCCESS);
    for (size_t i = 0; i < from.trace.records.size(); ++i) {
      const uint32_t correlation = from.correlations[i];
      if (!from.calls.contains(correlation)) continue;  // submitted before the profile began
      DeviceRecord& record = trace.records.emplace_back(std::move(from.trace.records[i]));
      const auto external = from.externals.find(correlation);
      if (external == from.externals.end()) continue;
      if (external->second & kStepBit)
        record.step = static_cast<int>(external->second & ~kStepBit) + kNoStep;
      else
        record.launch = static_cast<int64_t>(external->second);
    }
    from.trace = {};
    return trace;
  }

 private:
  void push_step(int step) {
    cupti_.cuptiActivityPushExternalCorrelationId(kOurs, kStepBit | static_cast<uint64_t>(step - kNoStep));
  }
  void pop() {
    uint64_t last = 0;
    cupti_.cuptiActivityPopExternalCorrelationId(kOurs, &last);
  }
  void close() {
    while (enabled_ > 0) cupti_.cuptiActivityDisable(kKinds[--enabled_]);
    std::lock_guard lock(inbox().mutex);
    inbox().open = false;
  }

  const Cupti& cupti_;
  size_t enabled_ = 0;
};

}  // namespace

std::unique_ptr<DeviceTimer> start_cupti_timer(std::string& why) {
  try {
    auto timer = std::make_unique<CuptiTimer>(api());
    why = timer->open();
    if (why.empty()) return timer;
  } catch (const CudaError& missing) {
    why = missing.what();
  }
  return nullptr;
}

}  // namespace rooflab::profiler
