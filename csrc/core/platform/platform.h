// What differs between systems and between processors. Each has a file in this folder, which CMake chooses; no other
// file asks which one it is compiled for.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu_isa.h"

namespace rooflab::platform {

// ---- the system

// The CPUs that the scheduler lets this process run on, at most as many as its control groups grant time for; at least
// 1.
int usable_cpus();

// Bytes of the last-level cache; 0 or less where the system does not say.
int64_t cache_bytes();

// Bytes that the system and this process's control groups (a container's, say) can still give. A page is only taken
// when it is first written: of the `reserved` bytes that were allocated before, those not written yet are subtracted.
int64_t memory_left(int64_t reserved);

// `bytes` is a multiple of 2 MiB, and so is the address, so that the memory can use huge pages. Null when there is no
// room.
void* take_memory(int64_t bytes);
void give_back_memory(void* data, int64_t bytes);

// ---- the processor

std::vector<CpuIsa> instruction_sets();  // that it can run, the best one last
bool has_amx_bf16();                     // and the system lets this process use it
bool has_fast_bfloat16_dots();           // whose sums of two products take no longer than an FMA of float32

void pause();  // between two looks at a value that another thread will change

}  // namespace rooflab::platform
