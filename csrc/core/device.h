// Where a tensor lives, and the stream that orders work on it.
#pragma once

#include <cstdint>
#include <string>

namespace rooflab {

struct Device {
  enum class Type : uint8_t { kCpu, kCuda, kMeta };  // kMeta: no memory, stands for a named target (core/target.h)
  Type type = Type::kCpu;
  int8_t index = 0;  // of the GPU, or of the target

  bool is_cpu() const { return type == Type::kCpu; }
  bool is_cuda() const { return type == Type::kCuda; }
  bool is_meta() const { return type == Type::kMeta; }
  bool operator==(const Device&) const = default;
};

std::string to_string(Device device);  // "cpu", "cuda:0", "meta:H200"

// A cudaStream_t, opaque so that headers need no CUDA. CUDA may give the handle of a destroyed stream to a new one; an
// id is never given twice. The CPU has no streams: kernels run in the calling thread.
struct Stream {
  static constexpr uint64_t kForeign = UINT64_MAX;  // of all streams of other libraries, which may be gone any time
  void* handle = nullptr;
  uint64_t id = 0;  // 0: the device's default stream
  bool operator==(const Stream&) const = default;
};

}  // namespace rooflab
