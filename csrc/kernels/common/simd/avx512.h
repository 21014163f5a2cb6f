// AVX-512 F, BW, DQ and VL, and AVX512_BF16 where it is compiled for that: registers of 64 bytes.
// (_mm512_maskz_f(-1, ..) is _mm512_f(..) without the warnings that GCC 12 gives for its own header.)
#pragma once

#include <immintrin.h>

namespace rooflab::kernels::ROOFLAB_ISA {
inline constexpr int kNativeBytes = 64;
inline constexpr int kRegisters = 32;
}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/registers.h"

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE NativeUint widen(NativeU16 x) { return (NativeUint)_mm512_maskz_cvtepu16_epi32(-1, (__m256i)x); }
ROOFLAB_INLINE NativeFloat native_sqrt(NativeFloat x) { return (NativeFloat)_mm512_maskz_sqrt_ps(-1, (__m512)x); }
ROOFLAB_INLINE NativeDouble native_sqrt(NativeDouble x) { return (NativeDouble)_mm512_maskz_sqrt_pd(-1, (__m512d)x); }
ROOFLAB_INLINE NativeFloat native_fma(NativeFloat a, NativeFloat b, NativeFloat c) {
  return (NativeFloat)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
ROOFLAB_INLINE NativeDouble native_fma(NativeDouble a, NativeDouble b, NativeDouble c) {
  return (NativeDouble)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
ROOFLAB_INLINE NativeFloat from_half(NativeU16 x) { return (NativeFloat)_mm512_maskz_cvtph_ps(-1, (__m256i)x); }
ROOFLAB_INLINE NativeU16 to_half(NativeFloat x) {
  return (NativeU16)_mm512_maskz_cvtps_ph(-1, (__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline constexpr bool kHasFma = true;

#if defined(__AVX512BF16__)  // these instructions treat subnormals as zero
ROOFLAB_INLINE bool have_subnormal(NativeFloat a, NativeFloat b) {
  constexpr int kSubnormal = 0x20;
  return (_mm512_fpclass_ps_mask((__m512)a, kSubnormal) | _mm512_fpclass_ps_mask((__m512)b, kSubnormal)) != 0;
}
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat x, NativeU16& out) {
  if (have_subnormal(x, x)) [[unlikely]]
    return false;
  out = (NativeU16)_mm512_maskz_cvtneps_pbh(0xffff, (__m512)x);
  return true;
}
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat low, NativeFloat high, NativeU16x2& out) {
  if (have_subnormal(low, high)) [[unlikely]]
    return false;
  out = (NativeU16x2)_mm512_maskz_cvtne2ps_pbh(~0u, (__m512)high, (__m512)low);
  return true;
}
#else
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat, NativeU16&) { return false; }
ROOFLAB_INLINE bool convert_bfloat16(NativeFloat, NativeFloat, NativeU16x2&) { return false; }
#endif

// n alone decides where |x| is large, as long as f is a number: |f| <= 1, and keeps its sign.
ROOFLAB_INLINE NativeFloat exp_argument(NativeFloat x) { return x; }
ROOFLAB_INLINE NativeFloat exp_rest(NativeFloat f) {
  return (NativeFloat)_mm512_maskz_range_ps(0xffff, (__m512)f, (__m512)(NativeFloat{} + 1.0f), 2);
}
ROOFLAB_INLINE NativeFloat times_power(NativeFloat p, NativeFloat n, NativeInt) {
  return (NativeFloat)_mm512_maskz_scalef_ps(0xffff, (__m512)p, (__m512)n);
}

// 2^x for Exp2, whose polynomial is 2^f on [-1/2, 1/2].
template <class Polynomial>
ROOFLAB_INLINE NativeFloat exp2(NativeFloat x, NativeFloat lowest, NativeFloat, Polynomial polynomial) {
  const __mmask16 not_low = _mm512_cmp_ps_mask((__m512)x, (__m512)lowest, _CMP_NLE_UQ);
  const auto f = (NativeFloat)_mm512_maskz_reduce_ps(0xffff, (__m512)x, _MM_FROUND_TO_NEAREST_INT);
  return (NativeFloat)_mm512_maskz_scalef_ps(not_low, (__m512)polynomial(f), (__m512)(x - f));
}

ROOFLAB_INLINE __mmask16 first_lanes_mask(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }
ROOFLAB_INLINE void load_first(const void* p, int64_t n, NativeFloat& x) {
  x = (NativeFloat)_mm512_maskz_loadu_ps(first_lanes_mask(n), p);
}
ROOFLAB_INLINE void load_first(const void* p, int64_t n, NativeDouble& x) {
  x = (NativeDouble)_mm512_maskz_loadu_pd(static_cast<__mmask8>(first_lanes_mask(n)), p);
}
ROOFLAB_INLINE void load_first(const void* p, int64_t n, NativeU16& x) {
  x = (NativeU16)_mm256_maskz_loadu_epi16(first_lanes_mask(n), p);
}
ROOFLAB_INLINE void store_first(void* p, int64_t n, NativeFloat x) {
  _mm512_mask_storeu_ps(p, first_lanes_mask(n), (__m512)x);
}
ROOFLAB_INLINE void store_first(void* p, int64_t n, NativeDouble x) {
  _mm512_mask_storeu_pd(p, static_cast<__mmask8>(first_lanes_mask(n)), (__m512d)x);
}
ROOFLAB_INLINE void store_first(void* p, int64_t n, NativeU16 x) {
  _mm256_mask_storeu_epi16(p, first_lanes_mask(n), (__m256i)x);
}

ROOFLAB_INLINE void stream_register(void* to, NativeInt bits) {
  _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)bits);
}
ROOFLAB_INLINE void hold(NativeFloat& x) { asm("" : "+v"(x)); }
ROOFLAB_INLINE void fence() { _mm_sfence(); }
ROOFLAB_INLINE void prefetch_near(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
ROOFLAB_INLINE void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace rooflab::kernels::ROOFLAB_ISA
