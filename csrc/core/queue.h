// The only way to start work on a device. A rung gets its arguments and a Queue, and says what to run:
//
//   on a GPU     queue.launch(kernel, {grid, block, shared_bytes}, args...), queue.fill(data, byte, bytes)
//   on the CPU   queue.parallel(count, grain, [&](int64_t begin, int64_t end, int worker) { ... })
//   on both      queue.scratch<float>(count), memory that the rung may use until it returns
//
// What is started is counted here as it happens (core/counters.h) and nowhere else. Files compiled for several
// instruction sets include this: nothing in it instantiates a std:: template.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/device.h"
#include "core/launch_shape.h"
#include "core/threads.h"

namespace rooflab {

// The distance, in elements, between the parts of scratch of two workers, each of `count` elements of `size` bytes:
// whole cache lines, so that no two workers write to one. (Apple's have 128 bytes.)
[[gnu::always_inline]] constexpr int64_t part_of_worker(int64_t count, int64_t size) {
  const int64_t line = 128 / size;
  return (count + line - 1) / line * line;
}

struct Target;
struct Footprint;

class Queue {
 public:
  // For one run of the rung `kernel` by the current call, on the device's current stream. Its blocks may use
  // `shared_bytes` each, as its footprint says.
  Queue(Device device, const char* kernel, int64_t shared_bytes = 0);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  Device device() const { return device_; }
  Stream stream() const { return stream_; }
  const Target& target() const;

  // Starts a __global__ function. Its parameters are passed by value, with the conversions of an ordinary call.
  template <class... Parameters, class... Args>
  void launch(void (*kernel)(Parameters...), const LaunchShape& shape, const Args&... args) {
    static_assert(sizeof...(Parameters) == sizeof...(Args), "the kernel takes another number of arguments");
    [&](Parameters... values) {
      void* pointers[] = {&values...};
      start(reinterpret_cast<const void*>(kernel), shape, pointers);
    }(args...);
  }
  // Sets each of `bytes` bytes to `byte`.
  void fill(void* data, int byte, int64_t bytes);

  // Runs a function of a vendor's library on stream(). The function itself starts what `started` says.
  template <class Body>
  void library(const Submissions& started, Body&& body) {
    start_library(
        started, [](void* b) { (*static_cast<std::remove_reference_t<Body>*>(b))(); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Calls body(begin, end, worker) on disjoint pieces of [0, count), on several threads when that is worthwhile: a
  // piece has at least `grain` items. No two pieces run at the same time with the same worker, 0 <= worker <
  // num_threads().
  template <class Body>
  void parallel(int64_t count, int64_t grain, Body&& body) {
    parallel(count, grain, INT64_MAX, body);
  }
  // The same, and also 0 <= worker < workers, for scratch per worker.
  template <class Body>
  void parallel(int64_t count, int64_t grain, int64_t workers, Body&& body) {
    threads::parallel(
        count, grain, workers,
        [](void* b, int64_t begin, int64_t end, int worker) {
          (*static_cast<std::remove_reference_t<Body>*>(b))(begin, end, worker);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  // Uninitialised; aligned to 256 bytes, or 4 KiB if it has 4 KiB or more; counted as memory of the op. Throws
  // OutOfMemory.
  template <class T>
  T* scratch(int64_t count) {
    return static_cast<T*>(scratch_bytes(count * static_cast<int64_t>(sizeof(T))));
  }
  void* scratch_bytes(int64_t bytes);

 private:
  struct Blocks;
  void start(const void* kernel, const LaunchShape& shape, void** arguments);
  void start_library(const Submissions& started, void (*run)(void*), void* body);

  Device device_;
  Stream stream_;
  const char* kernel_;
  int64_t shared_bytes_;
  Blocks* blocks_ = nullptr;  // the scratch blocks
};

}  // namespace rooflab
