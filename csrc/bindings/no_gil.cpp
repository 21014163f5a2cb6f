#include "bindings/no_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace rooflab {
namespace {

std::atomic<bool> ending{false};
std::atomic<int> inside{0};     // threads in NoGil
std::atomic<int> returning{0};  // those of them that wait for the lock
std::thread::id last_thread;    // the one that ends the interpreter, and may still use it

// Runs before Python refuses its lock to other threads: threads that wait for it get it now, later ones sleep.
void end() {
  last_thread = std::this_thread::get_id();
  ending = true;
  const pybind11::gil_scoped_release release;
  while (returning > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// A forked child has only the thread that forked, which held Python's lock.
void forget_threads() {
  inside = 0;
  returning = 0;
}

}  // namespace

NoGil::NoGil() {
  ++inside;
  state_ = PyEval_SaveThread();
}

bool NoGil::is_anywhere() { return inside > 0; }

NoGil::~NoGil() {
  ++returning;
  if (ending && std::this_thread::get_id() != last_thread) {
    --returning;
    for (;;) pause();
  }
  PyEval_RestoreThread(state_);
  --returning;
  --inside;
}

void register_no_gil() {
  pthread_atfork(nullptr, nullptr, &forget_threads);
  pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function(&end));
}

}  // namespace rooflab
