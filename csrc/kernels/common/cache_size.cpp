#include "kernels/common/cache_size.h"

#include <unistd.h>

#include <algorithm>

namespace rooflab::kernels {

bool exceeds_cpu_cache(int64_t bytes) {
  // Virtual machines report a cache that they share, or none.
  static const int64_t cache = std::clamp<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 8 << 20, 64 << 20);
  return 2 * bytes > cache;
}

}  // namespace rooflab::kernels
