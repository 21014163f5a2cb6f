#include "core/cuda_runtime.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "core/context.h"
#include "core/cuda_check.cuh"
#include "core/memory.h"
#include "core/mutex.h"

namespace rooflab::cuda {
namespace {

struct Probe {
  int count = 0;
  std::string why;
};

const Probe& probe() {
  static const Probe found = [] {
    Probe result;
    const cudaError_t status = cudaGetDeviceCount(&result.count);
    if (status != cudaSuccess) {
      cudaGetLastError();
      result.count = 0;
      result.why = message("no CUDA device can be used: ", cudaGetErrorString(status));
    } else if (result.count == 0) {
      result.why = "no CUDA device can be used: the driver reports none";
    }
    return result;
  }();
  return found;
}

cudaStream_t raw(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

std::string version(int number) { return message(number / 1000, ".", number % 1000 / 10); }

Mutex streams_mutex(LockOrder::kStreams);
struct LiveStream {
  Stream stream;
  int device;
};
std::map<uint64_t, LiveStream>& live_streams = *new std::map<uint64_t, LiveStream>;  // by id; outlives all of them

// The captures of each GPU's streams that are under way.
struct Captures {
  Mutex mutex{LockOrder::kCaptures};
  std::set<uint64_t> streams;  // by id
};
constexpr int kMostDevices = 128;                           // as many as Device::index can name
Captures* const all_captures = new Captures[kMostDevices];  // outlives all of them

Mutex properties_mutex(LockOrder::kTables);

Captures& captures(int device) {
  check_device(device);
  return all_captures[device];
}

}  // namespace

bool is_available() { return probe().count > 0; }
std::string unavailable() { return probe().why; }
int device_count() { return probe().count; }

void check_device(int device) {
  if (!is_available()) throw CudaError(probe().why);
  if (device < 0 || device >= device_count())
    throw CudaError(message("cuda:", device, " does not exist: this machine has ", device_count(), " CUDA device(s)"));
}

const Properties& properties(int device) {
  check_device(device);
  static std::vector<std::unique_ptr<Properties>> known(device_count());
  std::lock_guard lock(properties_mutex);
  if (!known[device]) {
    cudaDeviceProp prop;
    RL_CUDA_CHECK(cudaGetDeviceProperties(&prop, device));
    int driver = 0, runtime = 0;
    RL_CUDA_CHECK(cudaDriverGetVersion(&driver));
    RL_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
    known[device] = std::make_unique<Properties>(Properties{
        prop.name, prop.major * 10 + prop.minor, prop.multiProcessorCount, static_cast<int64_t>(prop.totalGlobalMem),
        prop.l2CacheSize, static_cast<int64_t>(prop.sharedMemPerBlockOptin), version(driver), version(runtime)});
  }
  return *known[device];
}

// Looked up each time, because other libraries in the process set it too.
OnDevice::OnDevice(int device) {
  int now = 0;
  if (cudaGetDevice(&now) == cudaSuccess && now == device) return;
  check_device(device);
  RL_CUDA_CHECK(cudaSetDevice(device));
  before_ = now;
}

OnDevice::~OnDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

namespace {

// A graph captures no allocation, so none can break it.
template <class F>
cudaError_t beside_captures(F&& allocate) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  RL_CUDA_CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
  const cudaError_t status = allocate();
  cudaThreadExchangeStreamCaptureMode(&mode);
  return status;
}

std::atomic<OutOfRange*> all_reports{nullptr};  // one per device; null until a kernel may report

}  // namespace

void* allocate(int64_t bytes, int device) {
  const OnDevice scope(device);
  void* data = nullptr;
  const cudaError_t status = beside_captures([&] { return cudaMalloc(&data, static_cast<size_t>(bytes)); });
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  cuda_check(status, "cudaMalloc", __FILE_NAME__, __LINE__);
  return data;
}

void release(void* data, int device) {
  const OnDevice scope(device);
  RL_CUDA_CHECK(cudaFree(data));
}

int device_of(const void* data) {
  cudaPointerAttributes attributes;
  RL_CUDA_CHECK(cudaPointerGetAttributes(&attributes, data));
  return std::max(attributes.device, 0);
}

void copy(void* destination, const void* source, int64_t bytes, int device) {
  const OnDevice scope(device);
  const cudaStream_t stream = raw(current_stream(device));
  RL_CUDA_CHECK(cudaMemcpyAsync(destination, source, static_cast<size_t>(bytes), cudaMemcpyDefault, stream));
  RL_CUDA_CHECK(cudaStreamSynchronize(stream));
}

int64_t free_memory(int device) {
  const OnDevice scope(device);
  size_t free = 0, total = 0;
  RL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

OutOfRange* out_of_range(int device) {
  static OutOfRange* const reports = [&] {
    const OnDevice scope(device);
    void* data = nullptr;
    const size_t bytes = kMostDevices * sizeof(OutOfRange);
    RL_CUDA_CHECK(beside_captures([&] { return cudaHostAlloc(&data, bytes, cudaHostAllocPortable); }));
    auto* const made = static_cast<OutOfRange*>(data);
    std::fill_n(made, kMostDevices, OutOfRange{});
    all_reports = made;
    return made;
  }();
  return reports + device;
}

void raise_out_of_range(int device) {
  OutOfRange* const reports = all_reports;
  if (!reports || __atomic_load_n(&reports[device].kind, __ATOMIC_ACQUIRE) == OutOfRange::kNone) return;
  OutOfRange found = reports[device];
  found.kind = __atomic_exchange_n(&reports[device].kind, OutOfRange::kNone, __ATOMIC_ACQ_REL);
  if (found.kind != OutOfRange::kNone)
    raise(found, message(" (a kernel on cuda:", device, " found this earlier; the GPU was waited for only now)"));
}

Stream current_stream(int device) {
  const std::vector<Stream>& streams = context().mode.streams;
  return static_cast<size_t>(device) < streams.size() ? streams[device] : Stream{};
}

void set_current_stream(int device, Stream stream) {
  check_device(device);
  context().mode.set_stream(device, stream);
}

Stream create_stream(int device) {
  const OnDevice scope(device);
  cudaStream_t stream;
  RL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  static uint64_t last_id = 0;
  std::lock_guard lock(streams_mutex);
  const Stream made{stream, ++last_id};
  live_streams.emplace(made.id, LiveStream{made, device});
  return made;
}

// Until the stream is no longer alive, the allocator may make it wait for another stream, hence the second
// synchronisation. Until adopt() has taken the allocator's lock, it may still use the stream.
void destroy_stream(Stream stream) noexcept {
  cudaStreamSynchronize(raw(stream));
  int device = -1;
  {
    std::lock_guard lock(streams_mutex);
    const auto found = live_streams.find(stream.id);
    if (found == live_streams.end()) return;
    device = found->second.device;
    live_streams.erase(found);
  }
  cudaStreamSynchronize(raw(stream));
  memory::adopt(stream, {Device::Type::kCuda, static_cast<int8_t>(device)});
  cudaStreamDestroy(raw(stream));
}

bool is_alive(Stream stream) {
  if (stream.id == 0 || stream.id == Stream::kForeign) return true;
  std::lock_guard lock(streams_mutex);
  return live_streams.contains(stream.id);
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status;
  RL_CUDA_CHECK(cudaStreamIsCapturing(raw(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

NoCapture::NoCapture(int device) : device_(device) { captures(device).mutex.lock(); }
NoCapture::~NoCapture() { captures(device_).mutex.unlock(); }

bool NoCapture::holds() const { return captures(device_).streams.empty(); }

void NoCapture::synchronize() const {
  const OnDevice scope(device_);
  RL_CUDA_CHECK(cudaDeviceSynchronize());
}

// Beside a capture, which waiting for the whole GPU would break, all streams are waited for but the captured ones.
void synchronize(int device) {
  const NoCapture none(device);  // and so none begins meanwhile
  if (none.holds()) return none.synchronize();
  synchronize(Stream{}, device);
  const std::set<uint64_t>& captured = captures(device).streams;
  std::lock_guard lock(streams_mutex);  // none is destroyed meanwhile
  for (const auto& [id, live] : live_streams)
    if (live.device == device && !captured.contains(id)) synchronize(live.stream, device);
}

void synchronize(Stream stream, int device) {
  const OnDevice scope(device);  // whose default stream it may be
  RL_CUDA_CHECK(cudaStreamSynchronize(raw(stream)));
}

void wait(Stream waiter, Stream other, int device) {
  if (waiter.handle == other.handle) return;
  const OnDevice scope(device);
  cudaEvent_t event;
  RL_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  cudaError_t status = cudaEventRecord(event, raw(other));
  if (status == cudaSuccess) status = cudaStreamWaitEvent(raw(waiter), event, 0);
  cudaEventDestroy(event);  // the runtime delays this until the event is over
  cuda_check(status, "cudaStreamWaitEvent", __FILE_NAME__, __LINE__);
}

Event::Event(int device) : device_(device) {
  check_device(device);
  const OnDevice scope(device);
  cudaEvent_t event;
  RL_CUDA_CHECK(cudaEventCreate(&event));
  handle_ = event;
}

Event::~Event() {
  if (handle_) cudaEventDestroy(static_cast<cudaEvent_t>(handle_));
}

void Event::record(Stream stream) {
  const OnDevice scope(device_);  // the device whose default stream it is
  RL_CUDA_CHECK(cudaEventRecord(static_cast<cudaEvent_t>(handle_), raw(stream)));
}

void Event::synchronize() const { RL_CUDA_CHECK(cudaEventSynchronize(static_cast<cudaEvent_t>(handle_))); }

double Event::elapsed_ms(const Event& later) const {
  later.synchronize();
  float milliseconds = 0;
  RL_CUDA_CHECK(
      cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(handle_), static_cast<cudaEvent_t>(later.handle_)));
  return milliseconds;
}

void fill(void* data, int byte, int64_t bytes, Stream stream) {
  RL_CUDA_CHECK(cudaMemsetAsync(data, byte, static_cast<size_t>(bytes), raw(stream)));
}

// Relaxed, so that loading a kernel's code and allocating memory are allowed while a stream is captured.
void begin_capture(Stream stream, int device) {
  Captures& own = captures(device);
  std::lock_guard lock(own.mutex);
  RL_CUDA_CHECK(cudaStreamBeginCapture(raw(stream), cudaStreamCaptureModeRelaxed));
  own.streams.insert(stream.id);
}

namespace {

// The capture is over afterwards, even if something had broken it.
cudaError_t finish_capture(Stream stream, int device, cudaGraph_t& graph) {
  Captures& own = captures(device);
  std::lock_guard lock(own.mutex);
  if (!own.streams.erase(stream.id)) return cudaSuccess;
  return cudaStreamEndCapture(raw(stream), &graph);
}

}  // namespace

void* end_capture(Stream stream, int device) {
  const OnDevice scope(device);
  cudaGraph_t graph = nullptr;
  RL_CUDA_CHECK(finish_capture(stream, device, graph));
  cudaGraphExec_t executable;
  const cudaError_t status = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  cuda_check(status, "cudaGraphInstantiate", __FILE_NAME__, __LINE__);
  return executable;
}

void abandon_capture(Stream stream, int device) {
  cudaGraph_t broken = nullptr;
  finish_capture(stream, device, broken);
  if (broken) cudaGraphDestroy(broken);
  cudaGetLastError();  // reads the error, which the runtime reports once more after a failed capture
}

void launch_graph(void* graph, int device, Stream stream) {
  const OnDevice scope(device);
  RL_CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), raw(stream)));
}

void destroy_graph(void* graph) {
  if (graph) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph));
}

Submissions count_submissions(int device, const std::function<void(Stream)>& submit) {
  const Stream stream = create_stream(device);
  begin_capture(stream, device);
  try {
    submit(stream);
  } catch (...) {
    abandon_capture(stream, device);
    destroy_stream(stream);
    throw;
  }
  cudaGraph_t graph = nullptr;
  RL_CUDA_CHECK(finish_capture(stream, device, graph));
  size_t count = 0;
  RL_CUDA_CHECK(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  RL_CUDA_CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
  Submissions found;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    RL_CUDA_CHECK(cudaGraphNodeGetType(node, &type));
    ++(type == cudaGraphNodeTypeKernel ? found.kernels : found.others);
  }
  RL_CUDA_CHECK(cudaGraphDestroy(graph));
  destroy_stream(stream);
  return found;
}

}  // namespace rooflab::cuda
