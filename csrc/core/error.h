// Errors: a failed check becomes one sentence, raised in Python as ValueError (design: "Errors").
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace rooflab {

// Memory that the device could not give; raised in Python as rooflab.OutOfMemoryError.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A CUDA call or a CUDA library that failed or is missing; raised in Python as rooflab.CudaError.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Writes its arguments one after another: message("expected ", 3, ", got ", 4).
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace rooflab

// RL_CHECK(condition, "op", parts...) throws "[op] parts" when the condition is false.
#define RL_CHECK(condition, op, ...)                                                 \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      throw std::invalid_argument(::rooflab::message("[", (op), "] ", __VA_ARGS__)); \
  } while (false)
