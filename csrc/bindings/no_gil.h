// Releases Python's lock while kernels run, so that other Python threads can continue. They may meanwhile assign a
// tensor that Python owns (h += 1), so what runs without the lock works on copies that were made under it.
#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>
#include <utility>

#include "core/tensor.h"

namespace rooflab {

// While it lives, this thread does not hold the lock and must not touch Python. Unlike pybind11's own release, it is
// safe in a daemon thread when the interpreter ends. There Python would end the thread by an exception that no C++
// function survives; here the thread sleeps until the process is gone.
class NoGil {
 public:
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

  // Whether any thread is inside one. While the lock is held, a false stays false.
  static bool is_anywhere();

 private:
  // Only these two let the lock go.
  template <class F>
  friend auto run_without_gil(const F& f);
  template <class F, class Result, class... Args>
  friend auto wrap_without_gil(F f, std::type_identity<Result(Args...)>);
  NoGil();
  ~NoGil();

  int64_t outer_stack_;
  PyThreadState* state_;
};

// From here on `source()` is called when a call lets the lock go. It returns a number for the stack of the Python code,
// which Context::stack holds during the call. None ends it. `source` must not call rooflab.
void take_stacks(const pybind11::object& source);

// f() without the lock. `f` captures by value: run_without_gil([=] { return matmul(a, b); }).
template <class F>
auto run_without_gil(const F& f) {
  const NoGil no_gil;
  return f();
}

template <class T>
using CopiedIfTensor = std::conditional_t<std::is_same_v<std::decay_t<T>, Tensor>, Tensor, T>;

// Other arguments are no references into objects that Python code can assign: pybind11 makes lists and optionals of
// tensors anew for each call.
template <class F, class Result, class... Args>
auto wrap_without_gil(F f, std::type_identity<Result(Args...)>) {
  static_assert(!std::is_reference_v<Result>, "it would refer to a copy");
  return [f = std::move(f)](CopiedIfTensor<Args>... args) -> Result {
    const NoGil no_gil;
    return f(static_cast<Args&&>(args)...);
  };
}

// For m.def(): the whole call runs without the lock, and its tensors are copies.
template <class F>
auto without_gil(F f) {
  return wrap_without_gil(std::move(f), std::type_identity<pybind11::detail::function_signature_t<F>>());
}

// Tells the threads inside NoGil when the interpreter ends.
void register_no_gil();

}  // namespace rooflab
