// One source, several instruction sets. A file named *_simd.cpp is compiled once per instruction set, with ROOFLAB_ISA
// as the namespace of its functions. The best one that this CPU can run is chosen at run time, so the same binary never
// crashes on an older CPU. Such a file keeps everything else in an anonymous namespace and instantiates no std::
// template, because the linker might keep a weak copy that was compiled for AVX-512 and use it everywhere.
#pragma once

#include "core/cpu_isa.h"
#include "core/queue.h"
#include "core/target.h"

// Declares `function` in the namespace of each instruction set, and defines the one that chooses by `isa`.
#define ROOFLAB_CHOOSE_ISA(isa, Result, function, parameters, arguments)    \
  namespace isa_baseline {                                                  \
  Result function parameters;                                               \
  }                                                                         \
  namespace isa_avx2 {                                                      \
  Result function parameters;                                               \
  }                                                                         \
  namespace isa_avx512 {                                                    \
  Result function parameters;                                               \
  }                                                                         \
  namespace isa_avx512_bf16 {                                               \
  Result function parameters;                                               \
  }                                                                         \
  inline Result function parameters {                                       \
    switch (isa) {                                                          \
      case CpuIsa::kAvx512Bf16: return isa_avx512_bf16::function arguments; \
      case CpuIsa::kAvx512: return isa_avx512::function arguments;          \
      case CpuIsa::kAvx2: return isa_avx2::function arguments;              \
      case CpuIsa::kBaseline: break;                                        \
    }                                                                       \
    return isa_baseline::function arguments;                                \
  }

// A rung, and its choice by instruction set.
#define ROOFLAB_PER_ISA(function, Args) \
  ROOFLAB_CHOOSE_ISA(cpu_isa(), void, function, (const Args& args, Queue& queue), (args, queue))
#define ROOFLAB_FOOTPRINT_PER_ISA(function, Args) \
  ROOFLAB_CHOOSE_ISA(target.isa, Footprint, function, (const Args& args, const Target& target), (args, target))
