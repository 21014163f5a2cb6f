// What the headers of this folder share. Each stands for one instruction set: it sets kNativeBytes and kRegisters, a
// number, includes this file, and defines, on one register,
//   widen native_sqrt native_fma kHasFma    what the compiler's vector extension has no operator for
//   from_half to_half                       binary16
//   convert_bfloat16                        false where the instruction set does not round to bfloat16
//   exp_argument exp_rest times_power exp2  what native_exp and Exp2 (simd_math.h) do in one instruction or in several
//   load_first store_first                  the first n lanes alone; those that are not loaded are 0
//   hold                                    keeps a constant in a register
//   stream_register fence prefetch_near prefetch_far
// CMake chooses the header of each instruction set.
#pragma once

#include <cstdint>
#include <cstring>

namespace rooflab::kernels::ROOFLAB_ISA {

// One hardware register of each element type.
typedef float NativeFloat __attribute__((vector_size(kNativeBytes)));
typedef double NativeDouble __attribute__((vector_size(kNativeBytes)));
typedef int32_t NativeInt __attribute__((vector_size(kNativeBytes)));
typedef uint32_t NativeUint __attribute__((vector_size(kNativeBytes)));
typedef int64_t NativeLong __attribute__((vector_size(kNativeBytes)));
typedef uint16_t NativeU16 __attribute__((vector_size(kNativeBytes / 2)));  // as many lanes as NativeFloat
typedef uint16_t NativeU16x2 __attribute__((vector_size(kNativeBytes)));

// Rounds; the result is in the upper half of each lane.
ROOFLAB_INLINE NativeUint rounded_bfloat16(NativeFloat x) {
  const NativeUint bits = (NativeUint)x;
  return x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
