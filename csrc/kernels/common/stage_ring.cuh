// The stages of tiles in shared memory, which a producer fills and consumers empty, one after another, lap after lap.
#pragma once

#include <cstdint>

namespace rooflab::kernels {

// The current stage of a ring, and the parity of the current lap, for which its barriers wait.
template <int kSize>
struct StageRing {
  int stage = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kSize) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace rooflab::kernels
