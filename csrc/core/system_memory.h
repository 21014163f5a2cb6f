// This machine's memory: how much is available, and allocating it.
#pragma once

#include <cstdint>

namespace rooflab::system_memory {

// Bytes that Linux and this process's control groups (a container's, say) can still give. A page is only taken when it
// is first written: of the `reserved` bytes that were allocated before, those not written yet are subtracted.
int64_t left(int64_t reserved);

// `bytes` is a multiple of 2 MiB, and so is the address, so that the memory can use huge pages. Null when there is no
// room.
void* take(int64_t bytes);
void give_back(void* data, int64_t bytes);

}  // namespace rooflab::system_memory
