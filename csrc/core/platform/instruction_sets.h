// The instruction sets that CPU kernels are compiled for on this processor (csrc/CMakeLists.txt compiles them).
#pragma once

// use(namespace of its kernels, CpuIsa, ...) for each.
#if defined(__x86_64__)
#define ROOFLAB_EACH_ISA(use, ...)                                                                                  \
  use(isa_baseline, kBaseline, __VA_ARGS__) use(isa_avx2, kAvx2, __VA_ARGS__) use(isa_avx512, kAvx512, __VA_ARGS__) \
      use(isa_avx512_bf16, kAvx512Bf16, __VA_ARGS__)
#elif defined(__aarch64__)
#define ROOFLAB_EACH_ISA(use, ...) use(isa_neon, kNeon, __VA_ARGS__) use(isa_neon_bf16, kNeonBf16, __VA_ARGS__)
#endif
