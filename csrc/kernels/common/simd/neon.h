// NEON, which every aarch64 processor has, and FEAT_BF16 where it is compiled for that: registers of 16 bytes.
#pragma once

#include <arm_neon.h>

namespace rooflab::kernels::ROOFLAB_ISA {
inline constexpr int kNativeBytes = 16;
inline constexpr int kRegisters = 32;
}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/registers.h"

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE NativeUint widen(NativeU16 x) { return (NativeUint)vmovl_u16((uint16x4_t)x); }
ROOFLAB_INLINE NativeFloat native_sqrt(NativeFloat x) { return (NativeFloat)vsqrtq_f32((float32x4_t)x); }
ROOFLAB_INLINE NativeDouble native_sqrt(NativeDouble x) { return (NativeDouble)vsqrtq_f64((float64x2_t)x); }
ROOFLAB_INLINE NativeFloat native_fma(NativeFloat a, NativeFloat b, NativeFloat c) {
  return (NativeFloat)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
ROOFLAB_INLINE NativeDouble native_fma(NativeDouble a, NativeDouble b, NativeDouble c) {
  return (NativeDouble)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}
ROOFLAB_INLINE NativeFloat from_half(NativeU16 x) { return (NativeFloat)vcvt_f32_f16((float16x4_t)x); }
ROOFLAB_INLINE NativeU16 to_half(NativeFloat x) { return (NativeU16)vcvt_f16_f32((float32x4_t)x); }

inline constexpr bool kHasFma = true;

// A processor notices by itself that whole lines are written, and does not read them first.
ROOFLAB_INLINE void stream_register(void* to, NativeInt bits) { std::memcpy(to, &bits, sizeof(bits)); }
ROOFLAB_INLINE void fence() {}
ROOFLAB_INLINE void hold(NativeFloat& x) { asm("" : "+w"(x)); }
ROOFLAB_INLINE void prefetch_near(const void* p) { __builtin_prefetch(p, 0, 3); }
ROOFLAB_INLINE void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/without_masks.h"
#include "kernels/common/simd/without_scale.h"

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE bool convert_bfloat16(NativeFloat x, NativeU16& out) {
  out = (NativeU16)vcvt_bf16_f32((float32x4_t)x);
  return true;
}
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat low, NativeFloat high, NativeU16x2& out) {
  out = (NativeU16x2)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)low), (float32x4_t)high);
  return true;
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
#else
#include "kernels/common/simd/without_bfloat16.h"
#endif
