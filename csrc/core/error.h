// Errors: a failed check becomes one sentence, raised in Python as ValueError (design: "Errors").
#pragma once

#include <concepts>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rooflab {

// Memory that the device did not have; raised in Python as rooflab.OutOfMemoryError.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A CUDA call or a CUDA library that failed or is missing; raised in Python as rooflab.CudaError.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What fails only because a tensor has no memory, as those have with which rl.compile records a function; raised in
// Python as ValueError.
struct WithoutMemory : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// What message() can write. Another type joins by an overload in its own namespace. It avoids streams, because their
// locales break in a process that holds two copies of the C++ library.
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char letter) { out += letter; }
template <std::integral T>
void append(std::string& out, T number) {
  out += std::to_string(number);
}
inline void append(std::string& out, double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  out += text;
}

// Writes its arguments one after another: message("expected ", 3, ", got ", 4).
template <class... Parts>
std::string message(const Parts&... parts) {
  std::string out;
  (append(out, parts), ...);
  return out;
}

}  // namespace rooflab

// RL_CHECK(condition, "op", parts...) throws "[op] parts" when the condition is false.
#define RL_CHECK(condition, op, ...) RL_CHECK_AS(std::invalid_argument, condition, op, __VA_ARGS__)

#define RL_CHECK_AS(Error, condition, op, ...)                       \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      throw Error(::rooflab::message("[", (op), "] ", __VA_ARGS__)); \
  } while (false)
