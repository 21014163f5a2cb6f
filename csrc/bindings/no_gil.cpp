#include "bindings/no_gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "core/context.h"

namespace rooflab {
namespace {

std::atomic<bool> ending{false};
std::atomic<int> inside{0};        // threads in NoGil
std::atomic<int> returning{0};     // those of them that wait for the lock
std::thread::id last_thread;       // the one that ends the interpreter, and may still use it
PyObject* stack_source = nullptr;  // Python's lock guards it

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

// 0 if nobody asks or the source fails. An exception that is under way stays so.
int64_t stack_now() {
  if (!stack_source) return 0;
  const pybind11::error_scope under_way;
  const auto source = pybind11::reinterpret_borrow<pybind11::object>(stack_source);
  try {
    return source().cast<int64_t>();
  } catch (const pybind11::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();  // it comes again when the call has ended
  } catch (const std::exception&) {
  }
  return 0;
}

}  // namespace

NoGil::NoGil() : outer_stack_(std::exchange(context().stack, stack_now())) {
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
  context().stack = outer_stack_;
  --returning;
  --inside;
}

void take_stacks(const pybind11::object& source) {
  Py_XDECREF(std::exchange(stack_source, source.is_none() ? nullptr : pybind11::object(source).release().ptr()));
}

void register_no_gil() {
  pthread_atfork(nullptr, nullptr, &forget_threads);
  pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function(&end));
}

}  // namespace rooflab
