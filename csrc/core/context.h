// All that the runtime keeps for each thread. Types of the layers above stay opaque here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/dtype.h"

namespace rooflab {

class Graph;
class OpScope;
struct PrivateCounts;
struct Recording;
class Tensor;
class Trace;
struct CaptureLog;
namespace autocast {
struct Casts;
}
namespace autograd {
class Checkpoint;
class DrawScope;
class ReadScope;
struct Parts;
}  // namespace autograd
namespace memory {
class Pool;
}

// What becomes of the thread's calls. It changes as a whole, and so it is restored as a whole when an error ends what
// had changed it.
struct Mode {
  Graph* graph = nullptr;                  // captures them (ops/graph.h)
  CaptureLog* log = nullptr;               // where the graph notes them
  Trace* trace = nullptr;                  // records them (ops/trace.h)
  std::shared_ptr<Recording> recording;    // the capture or the trace, whichever is inner (core/allocator.h)
  const memory::Pool* pool = nullptr;      // what they allocate comes from it; null: from the general cache
  std::shared_ptr<PrivateCounts> counter;  // counts those without memory (core/counters.h)
  bool is_uncounted = false;               // what they allocate on devices without memory is not counted
  std::vector<Stream> streams;             // the current one of each GPU; of later ones the default stream

  void set_stream(int device, Stream stream) {
    if (static_cast<size_t>(device) >= streams.size()) streams.resize(device + 1);
    streams[device] = stream;
  }
};

class ModeScope {
 public:
  explicit ModeScope(Mode mode);
  ~ModeScope();
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Mode outer_;
};

struct OpenRange {
  int64_t number;
  size_t start, end;  // of its name in the path
};

// A stream that `with` has made the current one. Its Python object is held, so that it is not destroyed.
struct EnteredStream {
  void* object;
  Stream previous;
};

struct Context {
  Mode mode;

  // Names (core/range.h)
  OpScope* op = nullptr;  // the innermost
  std::string range_path;
  std::vector<OpenRange> open_ranges;  // outermost first
  int64_t stack = 0;                   // of the Python code that made the current call, if somebody asks for stacks

  std::vector<EnteredStream> entered_streams;

  // What follows may hold tensors, whose end reads what stands above.

  // Gradients (autograd/tape.h, checkpoint.h)
  bool records_gradients = true;
  std::shared_ptr<autograd::Checkpoint> checkpoint;     // what is recorded belongs to it
  std::vector<Tensor>* recomputed = nullptr;            // where it collects what it computes again
  autograd::ReadScope* reads = nullptr;                 // what is read is told to it (autograd/reads.h)
  autograd::DrawScope* draws = nullptr;                 // and what is drawn (autograd/draws.h)
  std::vector<autograd::Parts>* dismantling = nullptr;  // of nodes that are being destroyed

  // Autocast (ops/autocast.h)
  std::optional<DType> low_dtype;
  int autocasts = 0;  // nested contexts
  std::shared_ptr<autocast::Casts> casts;
};

Context& context();  // of the calling thread

}  // namespace rooflab
