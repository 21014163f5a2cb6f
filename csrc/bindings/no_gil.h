// Python's lock is released while kernels run, so that other Python threads go on.
#pragma once

#include <pybind11/pybind11.h>

namespace rooflab {

// While it lives this thread does not hold the lock and must not touch Python. Unlike pybind11's own release, it is
// safe in a daemon thread when the interpreter ends: Python would end such a thread from within, by an exception that
// no C++ function survives. Here it sleeps until the process is gone.
class NoGil {
 public:
  NoGil();
  ~NoGil();
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

  // Whether a thread is inside one. With the lock held, a false stays false.
  static bool is_anywhere();

 private:
  PyThreadState* state_;
};

// For m.def(): the whole call runs without the lock.
using WithoutGil = pybind11::call_guard<NoGil>;

// Lets the threads inside NoGil know that the interpreter ends.
void register_no_gil();

}  // namespace rooflab
