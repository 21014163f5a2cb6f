// Releases Python's lock while kernels run, so that other Python threads can continue.
#pragma once

#include <pybind11/pybind11.h>

namespace rooflab {

// While it lives, this thread does not hold the lock and must not touch Python. Unlike pybind11's own release, it is
// safe in a daemon thread when the interpreter ends. There Python would end the thread by an exception that no C++
// function survives; here the thread sleeps until the process is gone.
class NoGil {
 public:
  NoGil();
  ~NoGil();
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

  // Whether any thread is inside one. While the lock is held, a false stays false.
  static bool is_anywhere();

 private:
  PyThreadState* state_;
};

// For m.def(): the whole call runs without the lock.
using WithoutGil = pybind11::call_guard<NoGil>;

// Tells the threads inside NoGil when the interpreter ends.
void register_no_gil();

}  // namespace rooflab
