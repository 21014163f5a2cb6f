// A number out of range in data that only a kernel reads: an index, the class of a row, a position in a cache. A CPU
// kernel throws it. A GPU kernel writes it to where cuda::out_of_range says (core/cuda_runtime.h), and it is thrown
// when the host next waits.
#pragma once

#include <cstdint>
#include <string>

namespace rooflab {

struct OutOfRange {
  enum Kind : int64_t {
    kNone,
    kIndex,         // of `op`, in [0, limit)
    kIndexFromEnd,  // of x[index], in [-limit, limit), along dimension `detail` of x
    kClass,         // of cross_entropy, in [0, limit), or `detail`
    kPosition       // of kv_append, at least 0
  };
  Kind kind;  // a kernel writes it last
  int64_t number, limit, detail;
  const char* op;  // in the host's memory
};

// Throws IndexError for x[index], else ValueError. `where`: what the sentence ends in.
[[noreturn]] void raise(const OutOfRange& found, const std::string& where = "");

}  // namespace rooflab
