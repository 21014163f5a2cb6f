// For functions that read or change what belongs to the process or to a device.
#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>
#include <utility>

#include "ops/trace.h"

namespace rooflab {

template <class F, class Result, class... Args>
auto unrecorded(const char* name, F f, std::type_identity<Result(Args...)>) {
  return [name, f = std::move(f)](Args... args) -> Result {
    Trace::refuse(name, "a program would not do it again at each call; do it outside of the compiled function");
    return f(std::forward<Args>(args)...);
  };
}

// For m.def(): refuses to be called by a function that rl.compile records.
template <class F>
auto unrecorded(const char* name, F f) {
  return unrecorded(name, std::move(f), std::type_identity<pybind11::detail::function_signature_t<F>>());
}

}  // namespace rooflab
