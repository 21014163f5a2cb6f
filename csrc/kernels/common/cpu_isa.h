// One source, several instruction sets. A file named *_simd.cpp is compiled once per instruction set, with ROOFLAB_ISA
// naming the namespace its functions live in; the best one that this CPU can run is chosen at run time, so the same
// binary never crashes on an older CPU. Such a file keeps all else in an anonymous namespace and instantiates no std::
// template: a weak copy compiled for AVX-512 could otherwise be the one that the linker keeps for everybody.
#pragma once

namespace rooflab::kernels {

enum class CpuIsa { kBaseline, kAvx2, kAvx512 };

// The best instruction set that this CPU runs (read once).
//   kAvx2:   AVX2, FMA, F16C.    kAvx512: AVX-512 F, BW, DQ, VL besides.
CpuIsa cpu_isa();

// bfloat16 dot products (AVX512_BF16) and bfloat16 matrix tiles (AMX_BF16, permitted by the kernel).
bool cpu_has_avx512_bf16();
bool cpu_has_amx_bf16();

}  // namespace rooflab::kernels

// Declares `function` in the namespace of each instruction set, and defines the one that chooses.
#define ROOFLAB_PER_ISA(function, Args)                                    \
  namespace isa_baseline {                                                 \
  void function(const Args&, Stream);                                      \
  }                                                                        \
  namespace isa_avx2 {                                                     \
  void function(const Args&, Stream);                                      \
  }                                                                        \
  namespace isa_avx512 {                                                   \
  void function(const Args&, Stream);                                      \
  }                                                                        \
  inline void function(const Args& args, Stream stream) {                  \
    switch (cpu_isa()) {                                                   \
      case CpuIsa::kAvx512: return isa_avx512::function(args, stream);     \
      case CpuIsa::kAvx2: return isa_avx2::function(args, stream);         \
      case CpuIsa::kBaseline: return isa_baseline::function(args, stream); \
    }                                                                      \
  }
