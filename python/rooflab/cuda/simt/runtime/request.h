// One request of a warp: its sectors in global memory, or its wavefronts in shared memory.
#pragma once

#include <cstdint>

#include "totals.h"

namespace simt {

// The lanes that take part, in their order, and where each accesses.
struct Request {
  int lanes;
  uint8_t lane[kWarp];
  uint64_t address[kWarp];
};

// Atomic operations on one address go one after another: its sector counts once for each.
void add_global(Access& total, const Request& request, int log_size, bool is_atomic);
void add_shared(Access& total, const Request& request, int log_size, bool is_atomic);
void keep(Example& example, const Request& request, int log_size, uint64_t cost);

}  // namespace simt
