// How threads of a warp meet (intrinsics.cpp).
#pragma once

#include "runner.h"

namespace simt {

// Operations of a warp beside those of rl_warp.
constexpr uint32_t kWhoIsActive = 100, kMatrixProduct = 101;

void tell_line(uint32_t site, uint32_t line);
// Gives `value` to the threads of `mask` and waits for them; lane().taken then holds theirs.
void meet(uint32_t site, uint32_t line, uint32_t mask, uint64_t value, uint32_t operation);
void wait_for_warp(uint32_t mask);  // the same, unseen by the accountant

}  // namespace simt
