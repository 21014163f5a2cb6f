// What a submission to a GPU consists of: how many threads a kernel has, and what a library starts by itself.
#pragma once

#include <cstdint>

namespace rooflab {

struct Dim3 {
  int64_t x = 1, y = 1, z = 1;
  constexpr Dim3(int64_t x = 1, int64_t y = 1, int64_t z = 1) : x(x), y(y), z(z) {}
};

// Dynamic shared memory that a block of every GPU gets without asking for it.
inline constexpr int64_t kSharedBytesOfAnyGpu = 48 * 1024;

struct LaunchShape {
  Dim3 grid, block;          // blocks, and threads per block
  int64_t shared_bytes = 0;  // dynamic, per block
  int cluster = 1;           // neighbouring blocks along x that run together (sm_90 and newer)
  bool early = false;        // may start while the previous kernel ends, and waits inside (sm_90 and newer)
  bool together = false;     // all blocks run at once, so they may wait for each other
};

struct Submissions {
  int kernels = 0;
  int others = 0;  // fills and copies
};

}  // namespace rooflab
