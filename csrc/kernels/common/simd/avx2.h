// AVX2, FMA and F16C: registers of 32 bytes.
#pragma once

#include <immintrin.h>

namespace rooflab::kernels::ROOFLAB_ISA {
inline constexpr int kNativeBytes = 32;
inline constexpr int kRegisters = 16;
}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/registers.h"

namespace rooflab::kernels::ROOFLAB_ISA {

ROOFLAB_INLINE NativeUint widen(NativeU16 x) { return (NativeUint)_mm256_cvtepu16_epi32((__m128i)x); }
ROOFLAB_INLINE NativeFloat native_sqrt(NativeFloat x) { return (NativeFloat)_mm256_sqrt_ps((__m256)x); }
ROOFLAB_INLINE NativeDouble native_sqrt(NativeDouble x) { return (NativeDouble)_mm256_sqrt_pd((__m256d)x); }
ROOFLAB_INLINE NativeFloat native_fma(NativeFloat a, NativeFloat b, NativeFloat c) {
  return (NativeFloat)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
ROOFLAB_INLINE NativeDouble native_fma(NativeDouble a, NativeDouble b, NativeDouble c) {
  return (NativeDouble)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
ROOFLAB_INLINE NativeFloat from_half(NativeU16 x) { return (NativeFloat)_mm256_cvtph_ps((__m128i)x); }
ROOFLAB_INLINE NativeU16 to_half(NativeFloat x) {
  return (NativeU16)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline constexpr bool kHasFma = true;

// Lanes of 16 bits have no masks: without_masks.h.
ROOFLAB_INLINE __m256i first_lanes_mask(int64_t n) {
  return (__m256i)(NativeInt{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(n));
}
ROOFLAB_INLINE __m256i first_long_lanes_mask(int64_t n) { return (__m256i)(NativeLong{0, 1, 2, 3} < n); }
ROOFLAB_INLINE void load_first(const void* p, int64_t n, NativeFloat& x) {
  x = (NativeFloat)_mm256_maskload_ps(static_cast<const float*>(p), first_lanes_mask(n));
}
ROOFLAB_INLINE void load_first(const void* p, int64_t n, NativeDouble& x) {
  x = (NativeDouble)_mm256_maskload_pd(static_cast<const double*>(p), first_long_lanes_mask(n));
}
ROOFLAB_INLINE void store_first(void* p, int64_t n, NativeFloat x) {
  _mm256_maskstore_ps(static_cast<float*>(p), first_lanes_mask(n), (__m256)x);
}
ROOFLAB_INLINE void store_first(void* p, int64_t n, NativeDouble x) {
  _mm256_maskstore_pd(static_cast<double*>(p), first_long_lanes_mask(n), (__m256d)x);
}

ROOFLAB_INLINE void stream_register(void* to, NativeInt bits) {
  _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)bits);
}
ROOFLAB_INLINE void hold(NativeFloat& x) { asm("" : "+v"(x)); }
ROOFLAB_INLINE void fence() { _mm_sfence(); }
ROOFLAB_INLINE void prefetch_near(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
ROOFLAB_INLINE void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd/without_bfloat16.h"
#include "kernels/common/simd/without_masks.h"
#include "kernels/common/simd/without_scale.h"
