// Where a tensor lives, and the queue that work on it is submitted to.
#pragma once

#include <cstdint>
#include <string>

namespace rooflab {

struct Device {
  enum class Type : uint8_t { kCpu, kCuda };
  Type type = Type::kCpu;
  int8_t index = 0;

  bool is_cpu() const { return type == Type::kCpu; }
  bool is_cuda() const { return type == Type::kCuda; }
  bool operator==(const Device&) const = default;
};

inline std::string to_string(Device device) { return device.is_cpu() ? "cpu" : "cuda:" + std::to_string(device.index); }

// A cudaStream_t, opaque so that headers need no CUDA. The CPU has none: kernels run in the caller.
struct Stream {
  void* handle = nullptr;
  bool operator==(const Stream&) const = default;
};

}  // namespace rooflab
