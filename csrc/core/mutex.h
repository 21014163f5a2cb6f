// Locks that a forked child finds open.
#pragma once

#include <mutex>

namespace rooflab {

// A thread that holds one of these takes only later ones. While it does, it waits for nothing that a thread with
// Python's lock could keep it from: no object dies that Python or another library owns, and nothing calls Python.
enum class LockOrder {
  kAccumulate,  // gradients of leaves are added, by kernels
  kGraphs,      // what threads share of graphs (autograd/)
  kKernels,     // caches of kernels that are made while the program runs
  kModules,     // machine code that is loaded
  kCounters,
  kProfiles,
  kListeners,  // to allocations
  kRecorders,
  kAllocators,
  kCaptures,  // of CUDA streams
  kStreams,
  kTables,  // whatever needs no other lock
};

// A fork waits until it is open. Without that, a child, in which only the thread that forked goes on, could wait for
// ever. Made and destroyed by threads that hold none.
class Mutex {
 public:
  explicit Mutex(LockOrder order);
  ~Mutex();
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  LockOrder order() const { return order_; }

 private:
  std::mutex mutex_;
  const LockOrder order_;
};

}  // namespace rooflab
