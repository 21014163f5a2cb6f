// A sequence of ops that is recorded once and then run again and again by one call: a CUDA graph on a GPU, the list of
// kernels on the CPU. What is captured does not run. Replays read and write the memory of the capture: new inputs are
// copied into the captured tensors, and results are read from them.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/context.h"
#include "core/counters.h"
#include "core/memory.h"
#include "core/mutex.h"
#include "core/tensor.h"

namespace rooflab {

class Graph {
 public:
  explicit Graph(Device device);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Between the two, this thread's ops on the device are captured, and its tensors come from the graph's own memory,
  // which nobody else gets while the graph lives.
  void begin();
  void end();
  void abandon();  // call this instead of end() if an error ended the capture

  void replay();  // on the current stream

  Device device() const { return log_.device; }
  bool is_captured() const { return captured_; }
  int64_t launches() const;

  // The graph that this thread is capturing; null if none.
  static Graph* capturing();
  // Called for each captured call: refuses what a graph cannot hold, and keeps alive what it reads and writes.
  void add(const char* op, const std::vector<Tensor>& read, const std::vector<Tensor>& written);
  void keep(std::shared_ptr<const void> used) { kept_.push_back(std::move(used)); }

  // Whether the memory of x was allocated in this capture, so that each replay fills it again.
  bool made(const Tensor& x) const { return x.storage()->recording() == recording_.get(); }

  // Reserves a place among the streams of random numbers, and a number in the graph's memory that grows at each replay,
  // by one for each such reservation. So each replay draws other random numbers than the last one.
  struct RandomStream {
    uint64_t stream;                   // of the first replay
    std::shared_ptr<Storage> advance;  // what later replays add to it, one int64
  };
  RandomStream next_random_stream();

 private:
  void leave();
  void make_advance();

  struct Use {
    Tensor first;  // what is read or written there first
    bool begins_with_read, is_written;
  };

  memory::Pool pool_;
  std::shared_ptr<Recording> recording_;  // of the newest capture
  CaptureLog log_;
  Mode outer_;  // what the thread returns to
  Stream stream_;
  void* executable_ = nullptr;                       // cudaGraphExec_t
  Mutex launching_{LockOrder::kTables};              // CUDA launches it in one thread at a time
  std::vector<std::shared_ptr<const void>> kept_;    // what replays use: code that was loaded
  std::unordered_map<const Storage*, Use> outside_;  // of memory that the capture did not make
  bool is_capturing_ = false;
  Tensor advance_;  // of the random streams
  uint64_t first_stream_;
  int64_t random_calls_ = 0;
  bool captured_ = false;
};

}  // namespace rooflab
