// This machine's memory: what there is to take, and taking it.
#pragma once

#include <cstdint>

namespace rooflab::system_memory {

// Bytes that Linux and the control groups of this process, as of a container, can still give. Pages come only when they
// are first written: of the `reserved` bytes that were taken before, what has not been written yet is no longer left.
int64_t left(int64_t reserved);

// `bytes` is a multiple of 2 MiB, and so is the address: such memory can be huge pages. Null when there is no room.
void* take(int64_t bytes);
void give_back(void* data, int64_t bytes);

}  // namespace rooflab::system_memory
