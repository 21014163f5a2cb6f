#include "ops/graph.h"

#include <atomic>
#include <utility>

#include "autograd/reads.h"
#include "core/context.h"
#include "core/cuda_runtime.h"
#include "ops/ops.h"
#include "ops/trace.h"

namespace rooflab {
namespace {

// Streams of random numbers that no op outside graphs reaches, 2^32 per graph.
std::atomic<uint64_t> next_graph{1};
constexpr int kStreamsOfGraph = 32;

}  // namespace

Graph::Graph(Device device) : first_stream_((uint64_t{1} << 63) + (next_graph++ << kStreamsOfGraph)) {
  RL_CHECK(!device.is_meta(), "graph", "device: expected cpu or cuda, got ", to_string(device));
  log_.device = device;
}

Graph::~Graph() {
  abandon();
  if (executable_) try {
      cuda::synchronize(device().index);  // a replay may still run on any stream, in memory that is freed now
    } catch (const CudaError&) {          // the context is lost, so nothing runs in it
    }
  cuda::destroy_graph(executable_);
  if (stream_.handle) cuda::destroy_stream(stream_);
}

Graph* Graph::capturing() { return context().mode.graph; }

void Graph::begin() {
  Trace::refuse("graph", "a recorded function cannot capture; capture its call instead");
  RL_CHECK(!captured_, "graph", "capture: this graph holds a capture already; make another rl.Graph");
  RL_CHECK(!capturing() && !is_capturing_, "graph", "capture: another graph is being captured; captures do not nest");
  Mode mode = context().mode;
  mode.graph = this;
  mode.log = &log_;
  mode.pool = &pool_;
  mode.recording = recording_ = std::make_shared<Recording>();
  if (device().is_cuda()) {
    const int gpu = device().index;
    cuda::synchronize(cuda::current_stream(gpu), gpu);  // waits until everything that the graph reads is written
    stream_ = cuda::create_stream(gpu);
    try {
      cuda::begin_capture(stream_, gpu);
    } catch (...) {
      cuda::destroy_stream(std::exchange(stream_, {}));
      throw;
    }
    mode.set_stream(gpu, stream_);
  }
  outer_ = std::exchange(context().mode, std::move(mode));
  is_capturing_ = true;
}

// The thread that captures may be gone; another one then keeps its own mode.
void Graph::leave() {
  if (capturing() == this) context().mode = std::move(outer_);
  is_capturing_ = false;
}

void Graph::end() {
  RL_CHECK(capturing() == this, "graph", "capture: none is under way");
  try {
    if (random_calls_ > 0) {
      const OpScope scope("graph");  // what is inside it does not count as a separate op
      write(ElementwiseOp::kAdd, advance_, {static_cast<double>(random_calls_), random_calls_});
    }
    if (device().is_cuda()) executable_ = cuda::end_capture(stream_, device().index);
  } catch (...) {
    abandon();
    throw;
  }
  leave();
  captured_ = true;
}

void Graph::abandon() {
  if (!is_capturing_) return;
  leave();
  if (device().is_cuda()) {
    cuda::abandon_capture(stream_, device().index);
    cuda::destroy_stream(std::exchange(stream_, {}));
  }
  random_calls_ = 0;
  *log_.launches = {};
  log_.calls.clear();
  log_.cpu_work.clear();
  kept_.clear();
  outside_.clear();
}

void Graph::replay() {
  Trace::refuse("graph", "a replay cannot be recorded; replay outside of the function");
  RL_CHECK(captured_, "graph", "replay: nothing was captured; run the ops inside `with graph.capture():` first");
  RL_CHECK(!capturing(), "graph", "replay: a graph is being captured, and a graph cannot hold another");
  // Before the work, because an error may end it after some of it was done.
  ++recording_->replays;
  autograd::note_replay(recording_);
  for (const auto& [storage, use] : outside_) {
    use.begins_with_read ? autograd::note_read(use.first) : autograd::note_overwritten(use.first);
    if (use.is_written) use.first.storage()->bump_replays();
  }
  const Stream stream = device().is_cuda() ? cuda::current_stream(device().index) : Stream{};
  rooflab::replay(log_, stream, [&] {
    std::lock_guard lock(launching_);
    cuda::launch_graph(executable_, device().index, stream);
  });
}

int64_t Graph::launches() const {
  int64_t count = 0;
  for (const LaunchRecord& launch : *log_.launches) count += launch.kernels;
  return count;
}

void Graph::add(const char* op, const std::vector<Tensor>& read, const std::vector<Tensor>& written) {
  const auto is_outside = [&](const Tensor& x) {
    if (!x.defined()) return false;
    RL_CHECK(x.device() == device(), op, "runs on ", to_string(x.device()), ", but the graph that is captured is on ",
             to_string(device()));
    return !made(x);
  };
  for (const Tensor& x : read)
    if (is_outside(x)) outside_.try_emplace(x.storage().get(), Use{x.detach(), true, false});
  for (const Tensor& y : written)
    if (is_outside(y))
      outside_.try_emplace(y.storage().get(), Use{y.detach(), false, true}).first->second.is_written = true;
}

// Outside the capture, because the counter must be set to zero only once.
void Graph::make_advance() {
  const ModeScope outside(outer_);
  Tensor made = Tensor::empty({1}, DType::kInt64, device());
  fill(made, {});
  if (device().is_cuda()) cuda::synchronize(cuda::current_stream(device().index), device().index);
  advance_ = std::move(made);
}

Graph::RandomStream Graph::next_random_stream() {
  if (!advance_.defined()) make_advance();
  return {first_stream_ + static_cast<uint64_t>(random_calls_++), advance_.storage()};
}

}  // namespace rooflab
