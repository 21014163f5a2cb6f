// The memory layout of DLPack 0.8, the exchange format of array libraries (dmlc.github.io/dlpack).
#pragma once

#include <cstdint>

#include "core/device.h"

namespace rooflab::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
enum TypeCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

struct Device {
  int32_t type;
  int32_t id;
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null when row-major
  uint64_t byte_offset;
};
struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor*);
};

// The numbers that DLPack and __cuda_array_interface__ use for streams: 1 is the default stream, others are handles.
inline intptr_t stream_number(Stream stream) { return stream.handle ? reinterpret_cast<intptr_t>(stream.handle) : 1; }
inline Stream stream_of(intptr_t number) {
  return number == 1 ? Stream{} : Stream{reinterpret_cast<void*>(number), Stream::kForeign};
}

}  // namespace rooflab::dlpack
