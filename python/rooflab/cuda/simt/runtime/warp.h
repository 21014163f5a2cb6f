// How threads of a warp meet (intrinsics.cpp).
#pragma once

#include "runner.h"

namespace simt {

void tell_line(uint32_t site, uint32_t line);
// Gives `value` to the threads of `mask` and waits for them; lane().taken then holds theirs.
void meet(uint32_t site, uint32_t line, uint32_t mask, uint64_t value, bool orders_memory);
void wait_for_warp(uint32_t mask);  // the same, unseen by the accountant

}  // namespace simt
