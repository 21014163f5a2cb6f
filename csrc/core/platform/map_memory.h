// Memory from mmap at an aligned address, for the systems of this folder that have it.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace rooflab::platform {

// `bytes` and the address are multiples of `alignment`. Null when there is no room.
inline char* map_memory(int64_t bytes, int64_t alignment) {
  if (bytes > INT64_MAX - alignment) return nullptr;
  void* mapped =
      mmap(nullptr, static_cast<size_t>(bytes + alignment), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(mapped);
  const auto below = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(begin) % static_cast<uintptr_t>(alignment));
  char* const data = begin + below;
  if (below > 0) munmap(begin, static_cast<size_t>(below));
  munmap(data + bytes, static_cast<size_t>(alignment - below));
  return data;
}

}  // namespace rooflab::platform
