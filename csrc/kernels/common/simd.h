// Vectors of 64 bytes for *_simd.cpp files: 16 floats (F32x16) or 8 doubles (F64x8) on every instruction set, held in
// one AVX-512 register, two of AVX2 or four of SSE2. Arithmetic is the compiler's vector extension; intrinsics stand
// only where it has no word (square root, FMA, binary16). Everything is inlined and lives in the namespace of one
// instruction set (see cpu_isa.h); for the same reason use load() and store() for Half and BFloat16 here, not their
// members.
//
//   load<T>(p), load<T>(p, n)        T in float, Half, BFloat16 -> F32x16;  double -> F64x8.  n lanes: the others are 0
//   store(p, v), store(p, v, n)      rounds to nearest even
//   + - * /  -x  < <= > >= == !=     comparisons give a Mask:  & | ~  any  select(mask, a, b)  store(bool*, mask)
//   fma sqrt abs min max floor       min and max pass NaN on, as NumPy and PyTorch do
//   exp log tanh sin cos             float: <= 1.6 ulp, exp <= 1 (without FMA 1.4); double: the C library, by lane
//   sum max_lane min_lane            one tree order on every instruction set
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/dtype.h"

#ifndef ROOFLAB_ISA
#error "simd.h is for files compiled once per instruction set, with ROOFLAB_ISA defined"
#endif

#define ROOFLAB_INLINE [[gnu::always_inline]] inline

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // all calls are inlined: no vector is passed between functions

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

template <class Scalar>
struct NativeOf;
template <>
struct NativeOf<float> {
  using Value = NativeFloat;
  using Mask = NativeInt;
};
template <>
struct NativeOf<double> {
  using Value = NativeDouble;
  using Mask = NativeLong;
};

template <class Scalar>
struct Mask {
  typename NativeOf<Scalar>::Mask part[kParts];  // all ones where true
};

template <class Scalar>
struct Simd {
  static constexpr int kLanes = 64 / sizeof(Scalar);
  typename NativeOf<Scalar>::Value part[kParts];

  Simd() = default;
  ROOFLAB_INLINE Simd(Scalar x) {
    for (int i = 0; i < kParts; ++i) part[i] = x - typename NativeOf<Scalar>::Value{};  // x - 0 is x, -0 and NaN too
  }
};

using F32x16 = Simd<float>;
using F64x8 = Simd<double>;

// The scalar that elements of type T are computed in, and its vector.
template <class T>
struct ComputeOf {
  using type = float;
};
template <>
struct ComputeOf<double> {
  using type = double;
};
template <class T>
using SimdOf = Simd<typename ComputeOf<T>::type>;

// Calls f.operator()<T>(); the caller has made sure that the dtype is floating.
template <class F>
ROOFLAB_INLINE auto with_floating(DType dtype, F f) {
  switch (dtype) {
    case DType::kFloat64: return f.template operator()<double>();
    case DType::kFloat32: return f.template operator()<float>();
    case DType::kFloat16: return f.template operator()<Half>();
    default: return f.template operator()<BFloat16>();
  }
}

// ---- lifting a function of registers to vectors

template <class S, class F>
ROOFLAB_INLINE Simd<S> map(Simd<S> a, F f) {
  Simd<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i]);
  return out;
}
template <class S, class F>
ROOFLAB_INLINE Simd<S> map(Simd<S> a, Simd<S> b, F f) {
  Simd<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i], b.part[i]);
  return out;
}
template <class S, class F>
ROOFLAB_INLINE Mask<S> compare(Simd<S> a, Simd<S> b, F f) {
  Mask<S> out;
  for (int i = 0; i < kParts; ++i) out.part[i] = f(a.part[i], b.part[i]);
  return out;
}

// Binary operators take a vector or a scalar on either side: the parameter that is not deduced converts.
template <class T>
struct Same {
  using type = T;
};
template <class T>
using same_t = typename Same<T>::type;

#define ROOFLAB_SIMD_OPERATOR(Result, lift, op)                                      \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(Simd<S> a, Simd<S> b) {                       \
    return lift(                                                                     \
        a, b, [](auto x, auto y) __attribute__((always_inline)) { return x op y; }); \
  }                                                                                  \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(Simd<S> a, same_t<S> b) {                     \
    return a op Simd<S>(b);                                                          \
  }                                                                                  \
  template <class S>                                                                 \
  ROOFLAB_INLINE Result<S> operator op(same_t<S> a, Simd<S> b) {                     \
    return Simd<S>(a) op b;                                                          \
  }
ROOFLAB_SIMD_OPERATOR(Simd, map, +)
ROOFLAB_SIMD_OPERATOR(Simd, map, -)
ROOFLAB_SIMD_OPERATOR(Simd, map, *)
ROOFLAB_SIMD_OPERATOR(Simd, map, /)
ROOFLAB_SIMD_OPERATOR(Mask, compare, <)
ROOFLAB_SIMD_OPERATOR(Mask, compare, <=)
ROOFLAB_SIMD_OPERATOR(Mask, compare, >)
ROOFLAB_SIMD_OPERATOR(Mask, compare, >=)
ROOFLAB_SIMD_OPERATOR(Mask, compare, ==)
ROOFLAB_SIMD_OPERATOR(Mask, compare, !=)
#undef ROOFLAB_SIMD_OPERATOR

template <class S>
ROOFLAB_INLINE Simd<S> operator-(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) { return -x; });
}
template <class S>
ROOFLAB_INLINE Simd<S>& operator+=(Simd<S>& a, Simd<S> b) {
  return a = a + b;
}
template <class S>
ROOFLAB_INLINE Simd<S>& operator*=(Simd<S>& a, Simd<S> b) {
  return a = a * b;
}

template <class S>
ROOFLAB_INLINE Mask<S> operator&(Mask<S> a, Mask<S> b) {
  for (int i = 0; i < kParts; ++i) a.part[i] &= b.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Mask<S> operator|(Mask<S> a, Mask<S> b) {
  for (int i = 0; i < kParts; ++i) a.part[i] |= b.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Mask<S> operator~(Mask<S> a) {
  for (int i = 0; i < kParts; ++i) a.part[i] = ~a.part[i];
  return a;
}
template <class S>
ROOFLAB_INLINE Simd<S> select(Mask<S> mask, Simd<S> a, Simd<S> b) {
  for (int i = 0; i < kParts; ++i) b.part[i] = mask.part[i] ? a.part[i] : b.part[i];
  return b;
}
template <class S>
ROOFLAB_INLINE bool any(Mask<S> mask) {
  long long words[8], all = 0;
  std::memcpy(words, mask.part, 64);
  for (long long word : words) all |= word;
  return all != 0;
}
template <class S>
ROOFLAB_INLINE void store(bool* out, Mask<S> mask, int64_t n = Simd<S>::kLanes) {
  decltype(mask.part[0][0] + 0) lanes[Simd<S>::kLanes];
  std::memcpy(lanes, mask.part, 64);
  for (int64_t i = 0; i < n; ++i) out[i] = lanes[i] != 0;
}

// ---- what the vector extension has no word for, a register at a time

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
// As core/dtype.h does it, on whole registers.
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
// Rounded, in the upper half of each lane.
ROOFLAB_INLINE NativeUint rounded_bfloat16(NativeFloat x) {
  const NativeUint bits = (NativeUint)x;
  return x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
}
ROOFLAB_INLINE NativeU16 to_bfloat16(NativeFloat x) {
#if defined(__AVX512BF16__)  // which takes subnormals for zero
  if (!have_subnormal(x, x)) [[likely]]
    return (NativeU16)_mm512_maskz_cvtneps_pbh(0xffff, (__m512)x);
#endif
  return __builtin_convertvector(rounded_bfloat16(x) >> 16, NativeU16);
}

// The numbers of two registers in one.
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

// ---- memory

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

template <class T>
ROOFLAB_INLINE SimdOf<T> load(const T* p) {
  SimdOf<T> out;
  for (int i = 0; i < kParts; ++i) read(p + i * (SimdOf<T>::kLanes / kParts), out.part[i]);
  return out;
}
template <class T>
ROOFLAB_INLINE void store(T* p, SimdOf<T> x) {
  constexpr int kStep = SimdOf<T>::kLanes / kParts;
  if constexpr (sizeof(T) == 2 && kParts > 1) {
    for (int i = 0; i < kParts; i += 2) {
      const NativeU16x2 bits = narrow<T>(x.part[i], x.part[i + 1]);
      std::memcpy(static_cast<void*>(p + i * kStep), &bits, sizeof(bits));
    }
  } else {
    for (int i = 0; i < kParts; ++i) write(p + i * kStep, x.part[i]);
  }
}

// The first n lanes (0 <= n <= kLanes): nothing beyond p[n - 1] is touched.
template <class T>
ROOFLAB_INLINE SimdOf<T> load(const T* p, int64_t n) {
  T buffer[SimdOf<T>::kLanes];
  std::memset(static_cast<void*>(buffer), 0, sizeof(buffer));
  std::memcpy(static_cast<void*>(buffer), p, static_cast<size_t>(n) * sizeof(T));
  return load<T>(buffer);
}
template <class T>
ROOFLAB_INLINE void store(T* p, SimdOf<T> x, int64_t n) {
  T buffer[SimdOf<T>::kLanes];
  store<T>(buffer, x);
  std::memcpy(static_cast<void*>(p), buffer, static_cast<size_t>(n) * sizeof(T));
}

// ---- arithmetic

template <class S>
ROOFLAB_INLINE Simd<S> fma(Simd<S> a, Simd<S> b, Simd<S> c) {  // a * b + c, rounded once where the CPU can
  for (int i = 0; i < kParts; ++i) c.part[i] = native_fma(a.part[i], b.part[i], c.part[i]);
  return c;
}
template <class S>
ROOFLAB_INLINE Simd<S> sqrt(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) { return native_sqrt(x); });
}
template <class S>
ROOFLAB_INLINE Simd<S> abs(Simd<S> a) {
  return map(
      a, [](auto x) __attribute__((always_inline)) {
        using Bits = typename NativeOf<S>::Mask;
        return (decltype(x))((Bits)x & ~(Bits)(-decltype(x){}));
      });
}
template <class S>
ROOFLAB_INLINE Simd<S> max(Simd<S> a, Simd<S> b) {
  return map(
      a, b, [](auto x, auto y) __attribute__((always_inline)) {
        const auto larger = x > y ? x : y;  // y when either is NaN
        return x == x ? larger : x;
      });
}
template <class S>
ROOFLAB_INLINE Simd<S> min(Simd<S> a, Simd<S> b) {
  return map(
      a, b, [](auto x, auto y) __attribute__((always_inline)) {
        const auto smaller = x < y ? x : y;
        return x == x ? smaller : x;
      });
}

// A C function, a lane at a time.
template <class S, class F>
ROOFLAB_INLINE Simd<S> map_lanes(Simd<S> a, F f) {
  S lanes[Simd<S>::kLanes];
  store<S>(lanes, a);
  for (S& lane : lanes) lane = f(lane);
  return load<S>(lanes);
}

template <class S>
ROOFLAB_INLINE S sum(Simd<S> a) {
  S lanes[Simd<S>::kLanes];
  store<S>(lanes, a);
  for (int half = Simd<S>::kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}
template <class S>
ROOFLAB_INLINE S max_lane(Simd<S> a) {
  S lanes[Simd<S>::kLanes];
  store<S>(lanes, a);
  for (int half = Simd<S>::kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      lanes[i] = lanes[i] > lanes[i + half] || lanes[i] != lanes[i] ? lanes[i] : lanes[i + half];
  return lanes[0];
}
template <class S>
ROOFLAB_INLINE S min_lane(Simd<S> a) {
  return -max_lane(-a);
}

}  // namespace rooflab::kernels::ROOFLAB_ISA

#include "kernels/common/simd_math.h"

#pragma GCC diagnostic pop
