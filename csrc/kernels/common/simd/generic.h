// Any processor: registers of 16 bytes, by the compiler's vector extension alone.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {
inline constexpr int kNativeBytes = 16;
inline constexpr int kRegisters = 16;
}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/registers.h"

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE NativeUint widen(NativeU16 x) { return __builtin_convertvector(x, NativeUint); }
ROOFLAB_INLINE NativeFloat native_sqrt(NativeFloat x) {
  for (int i = 0; i < 4; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}
ROOFLAB_INLINE NativeDouble native_sqrt(NativeDouble x) {
  for (int i = 0; i < 2; ++i) x[i] = __builtin_sqrt(x[i]);
  return x;
}
ROOFLAB_INLINE NativeFloat native_fma(NativeFloat a, NativeFloat b, NativeFloat c) { return a * b + c; }
ROOFLAB_INLINE NativeDouble native_fma(NativeDouble a, NativeDouble b, NativeDouble c) { return a * b + c; }
// Does what core/dtype.h does, on whole registers.
ROOFLAB_INLINE NativeFloat from_half(NativeU16 x) {
  const NativeUint bits = widen(x);
  const NativeUint sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  const NativeFloat normal = (NativeFloat)((magnitude << 13) + (112u << 23));
  const NativeFloat special = (NativeFloat)((magnitude << 13) | 0x7f800000u);
  const NativeFloat subnormal = __builtin_convertvector((NativeInt)magnitude, NativeFloat) * 0x1p-24f;
  const NativeFloat value = magnitude < 0x400u ? subnormal : magnitude >= 0x7c00u ? special : normal;
  return (NativeFloat)((NativeUint)value | sign);
}
ROOFLAB_INLINE NativeU16 to_half(NativeFloat x) {
  const NativeUint sign = ((NativeUint)x >> 16) & 0x8000u, magnitude = (NativeUint)x & 0x7fffffffu;
  const NativeUint normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const NativeUint subnormal = (NativeUint)((NativeFloat)magnitude + 0.5f) - 0x3f000000u;
  const NativeUint special = magnitude > 0x7f800000u ? NativeUint{} + 0x7e00u : NativeUint{} + 0x7c00u;
  const NativeUint value = magnitude < 0x38800000u ? subnormal : magnitude >= 0x477ff000u ? special : normal;
  return __builtin_convertvector(value | sign, NativeU16);
}

inline constexpr bool kHasFma = false;

ROOFLAB_INLINE void hold(NativeFloat&) {}
ROOFLAB_INLINE void stream_register(void* to, NativeInt bits) { std::memcpy(to, &bits, sizeof(bits)); }
ROOFLAB_INLINE void fence() {}
ROOFLAB_INLINE void prefetch_near(const void* p) { __builtin_prefetch(p, 0, 3); }
ROOFLAB_INLINE void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/without_bfloat16.h"
#include "kernels/common/simd/without_masks.h"
#include "kernels/common/simd/without_scale.h"
