// What one op has to do. FLOPs include 2 for each MAC. Bytes are compulsory: each piece of memory read once, each
// output written once.
#pragma once

#include <cstdint>

namespace rooflab {

struct Cost {
  int64_t macs = 0;
  int64_t flops = 0;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

}  // namespace rooflab
