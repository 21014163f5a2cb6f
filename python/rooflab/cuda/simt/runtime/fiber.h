// A thread of a block: a stack of its own, and a switch that saves what a called function has to save.
#pragma once

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace simt {

#if defined(__x86_64__) || defined(__aarch64__)
using Fiber = void*;  // its stack pointer
extern "C" void simt_switch(Fiber* from, Fiber to);
inline void switch_fiber(Fiber& from, Fiber& to) { simt_switch(&from, to); }
#else
using Fiber = ucontext_t;
inline void switch_fiber(Fiber& from, Fiber& to) { swapcontext(&from, &to); }
#endif

// Makes `fiber` begin `entry`, which must not return, at its next switch.
void prepare_fiber(Fiber& fiber, char* stack, char* top, void (*entry)());

}  // namespace simt
