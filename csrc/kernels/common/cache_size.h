// Whether data outlives the CPU's caches.
#pragma once

#include <cstdint>

namespace rooflab::kernels {

// True for an array that, once written, is not found in the last-level cache again: stores had better go around it.
bool exceeds_cpu_cache(int64_t bytes);

}  // namespace rooflab::kernels
