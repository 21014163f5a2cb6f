// For methods that pybind11 would call on a null pointer if Python calls them on None.
#pragma once

#include <utility>

namespace rooflab {

// Wraps a member function as a function of a reference, so that a call on None raises TypeError.
template <class Result, class Self, class... Args>
auto by_reference(Result (Self::*method)(Args...)) {
  return [method](Self& self, Args... args) -> Result { return (self.*method)(std::forward<Args>(args)...); };
}

template <class Result, class Self, class... Args>
auto by_reference(Result (Self::*method)(Args...) const) {
  return [method](const Self& self, Args... args) -> Result { return (self.*method)(std::forward<Args>(args)...); };
}

}  // namespace rooflab
