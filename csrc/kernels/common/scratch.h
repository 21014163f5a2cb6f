// Memory that a CPU kernel works in: packed panels, tiles of scores.
#pragma once

#include <cstdint>

namespace rooflab::kernels {

// At least `bytes` bytes at a page's start. They belong to the calling thread and stay until its next call; the block
// grows and is never given back, so that a kernel run again finds its pages in place.
void* cpu_scratch(int64_t bytes);

}  // namespace rooflab::kernels
