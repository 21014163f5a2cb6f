// One source, several instruction sets. A file named *_simd.cpp is compiled once per instruction set, with ROOFLAB_ISA
// as the namespace of its functions. The best one that this CPU can run is chosen at run time, so the same binary never
// crashes on an older CPU. Such a file keeps everything else in an anonymous namespace and instantiates no std::
// template, because the linker might keep a weak copy that was compiled for AVX-512 and use it everywhere.
#pragma once

#include "core/cpu_isa.h"
#include "core/platform/instruction_sets.h"
#include "core/queue.h"
#include "core/target.h"

#define ROOFLAB_DECLARE_FOR_ISA(space, isa, Result, function, parameters, arguments) \
  namespace space {                                                                  \
  Result function parameters;                                                        \
  }
#define ROOFLAB_CASE_OF_ISA(space, isa, Result, function, parameters, arguments) \
  case CpuIsa::isa: return space::function arguments;

// Declares `function` in the namespace of each instruction set, and defines the one that chooses by `isa`, which is one
// of this processor's.
#define ROOFLAB_CHOOSE_ISA(isa, Result, function, parameters, arguments)             \
  ROOFLAB_EACH_ISA(ROOFLAB_DECLARE_FOR_ISA, Result, function, parameters, arguments) \
  inline Result function parameters {                                                \
    switch (isa) {                                                                   \
      ROOFLAB_EACH_ISA(ROOFLAB_CASE_OF_ISA, Result, function, parameters, arguments) \
      default: __builtin_trap();                                                     \
    }                                                                                \
  }

// A rung, and its choice by instruction set.
#define ROOFLAB_PER_ISA(function, Args) \
  ROOFLAB_CHOOSE_ISA(cpu_isa(), void, function, (const Args& args, Queue& queue), (args, queue))
#define ROOFLAB_FOOTPRINT_PER_ISA(function, Args) \
  ROOFLAB_CHOOSE_ISA(target.isa, Footprint, function, (const Args& args, const Target& target), (args, target))
