// One hardware register at a time, for simd.h's vectors (include simd.h): operations that the compiler's vector
// extension lacks, and the conversion of elements of each type when they are loaded and stored.
#pragma once

namespace rooflab::kernels::ROOFLAB_ISA {

#if defined(__AVX512F__)
inline constexpr int kNativeBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kNativeBytes = 32;
#else
inline constexpr int kNativeBytes = 16;
#endif
inline constexpr int kParts = 64 / kNativeBytes;

// One hardware register of each element type.
typedef float NativeFloat __attribute__((vector_size(kNativeBytes)));
typedef double NativeDouble __attribute__((vector_size(kNativeBytes)));
typedef int32_t NativeInt __attribute__((vector_size(kNativeBytes)));
typedef uint32_t NativeUint __attribute__((vector_size(kNativeBytes)));
typedef int64_t NativeLong __attribute__((vector_size(kNativeBytes)));
typedef uint16_t NativeU16 __attribute__((vector_size(kNativeBytes / 2)));  // as many lanes as NativeFloat
typedef uint16_t NativeU16x2 __attribute__((vector_size(kNativeBytes)));

// (_mm512_maskz_f(-1, ..) is _mm512_f(..) without the warnings that GCC 12 gives for its own header.)
#if defined(__AVX512F__)
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
#elif defined(__AVX2__)
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
#else
ROOFLAB_INLINE NativeUint widen(NativeU16 x) { return __builtin_convertvector(x, NativeUint); }
ROOFLAB_INLINE NativeFloat native_sqrt(NativeFloat x) { return (NativeFloat)_mm_sqrt_ps((__m128)x); }
ROOFLAB_INLINE NativeDouble native_sqrt(NativeDouble x) { return (NativeDouble)_mm_sqrt_pd((__m128d)x); }
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
#endif

#if defined(__AVX512BF16__)
ROOFLAB_INLINE bool have_subnormal(NativeFloat a, NativeFloat b) {
  constexpr int kSubnormal = 0x20;
  return (_mm512_fpclass_ps_mask((__m512)a, kSubnormal) | _mm512_fpclass_ps_mask((__m512)b, kSubnormal)) != 0;
}
#endif
ROOFLAB_INLINE NativeFloat from_bfloat16(NativeU16 x) { return (NativeFloat)(widen(x) << 16); }
// Rounds; the result is in the upper half of each lane.
ROOFLAB_INLINE NativeUint rounded_bfloat16(NativeFloat x) {
  const NativeUint bits = (NativeUint)x;
  return x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
}
ROOFLAB_INLINE NativeU16 to_bfloat16(NativeFloat x) {
#if defined(__AVX512BF16__)  // this instruction treats subnormals as zero
  if (!have_subnormal(x, x)) [[likely]]
    return (NativeU16)_mm512_maskz_cvtneps_pbh(0xffff, (__m512)x);
#endif
  return __builtin_convertvector(rounded_bfloat16(x) >> 16, NativeU16);
}

// Joins the elements of two registers into one.
template <class T, int... kLane>
ROOFLAB_INLINE NativeU16x2 narrow(NativeFloat low, NativeFloat high, std::integer_sequence<int, kLane...>) {
  if constexpr (std::is_same_v<T, Half>) return __builtin_shufflevector(to_half(low), to_half(high), kLane...);
#if defined(__AVX512BF16__)
  if (!have_subnormal(low, high)) [[likely]]
    return (NativeU16x2)_mm512_maskz_cvtne2ps_pbh(~0u, (__m512)high, (__m512)low);
#endif
  const auto a = (NativeU16x2)rounded_bfloat16(low), b = (NativeU16x2)rounded_bfloat16(high);
  return __builtin_shufflevector(a, b, (2 * kLane + 1)...);
}
template <class T>
ROOFLAB_INLINE NativeU16x2 narrow(NativeFloat low, NativeFloat high) {
  return narrow<T>(low, high, std::make_integer_sequence<int, kNativeBytes / 2>{});
}

ROOFLAB_INLINE void read(const float* p, NativeFloat& x) { std::memcpy(&x, p, sizeof(x)); }
ROOFLAB_INLINE void read(const double* p, NativeDouble& x) { std::memcpy(&x, p, sizeof(x)); }
ROOFLAB_INLINE void read(const Half* p, NativeFloat& x) {
  NativeU16 bits;
  std::memcpy(&bits, p, sizeof(bits));
  x = from_half(bits);
}
ROOFLAB_INLINE void read(const BFloat16* p, NativeFloat& x) {
  NativeU16 bits;
  std::memcpy(&bits, p, sizeof(bits));
  x = from_bfloat16(bits);
}
ROOFLAB_INLINE void write(float* p, NativeFloat x) { std::memcpy(p, &x, sizeof(x)); }
ROOFLAB_INLINE void write(double* p, NativeDouble x) { std::memcpy(p, &x, sizeof(x)); }
ROOFLAB_INLINE void write(Half* p, NativeFloat x) {
  const NativeU16 bits = to_half(x);
  std::memcpy(static_cast<void*>(p), &bits, sizeof(bits));
}
ROOFLAB_INLINE void write(BFloat16* p, NativeFloat x) {
  const NativeU16 bits = to_bfloat16(x);
  std::memcpy(static_cast<void*>(p), &bits, sizeof(bits));
}

}  // namespace rooflab::kernels::ROOFLAB_ISA
