// One hardware register at a time, for simd.h's vectors (include simd.h): the conversion of elements of each type when
// they are loaded and stored, on any instruction set of simd/.
#pragma once

#include ROOFLAB_SIMD
#include "kernels/common/simd_shuffle.h"

namespace rooflab::kernels::ROOFLAB_ISA {

inline constexpr int kParts = 64 / kNativeBytes;

ROOFLAB_INLINE NativeFloat from_bfloat16(NativeU16 x) { return (NativeFloat)(widen(x) << 16); }
ROOFLAB_INLINE NativeU16 to_bfloat16(NativeFloat x) {
  if (NativeU16 bits; convert_bfloat16(x, bits)) [[likely]]
    return bits;
  return __builtin_convertvector(rounded_bfloat16(x) >> 16, NativeU16);
}

// Joins the elements of two registers into one.
template <class T, int... kLane>
ROOFLAB_INLINE NativeU16x2 narrow(NativeFloat low, NativeFloat high, std::integer_sequence<int, kLane...> lanes) {
  if constexpr (std::is_same_v<T, Half>) return join<NativeU16x2>(to_half(low), to_half(high), lanes);
  if (NativeU16x2 both; convert_bfloat16(low, high, both)) [[likely]]
    return both;
  const auto a = (NativeU16x2)rounded_bfloat16(low), b = (NativeU16x2)rounded_bfloat16(high);
  return shuffle<(2 * kLane + 1)...>(a, b);
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

// The first n lanes of a register, 0 <= n <= its number of lanes; the others are 0.
ROOFLAB_INLINE void read(const float* p, int64_t n, NativeFloat& x) { load_first(p, n, x); }
ROOFLAB_INLINE void read(const double* p, int64_t n, NativeDouble& x) { load_first(p, n, x); }
ROOFLAB_INLINE void read(const Half* p, int64_t n, NativeFloat& x) {
  NativeU16 bits;
  load_first(p, n, bits);
  x = from_half(bits);
}
ROOFLAB_INLINE void read(const BFloat16* p, int64_t n, NativeFloat& x) {
  NativeU16 bits;
  load_first(p, n, bits);
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

ROOFLAB_INLINE void write(float* p, int64_t n, NativeFloat x) { store_first(p, n, x); }
ROOFLAB_INLINE void write(double* p, int64_t n, NativeDouble x) { store_first(p, n, x); }
ROOFLAB_INLINE void write(Half* p, int64_t n, NativeFloat x) { store_first(p, n, to_half(x)); }
ROOFLAB_INLINE void write(BFloat16* p, int64_t n, NativeFloat x) { store_first(p, n, to_bfloat16(x)); }

}  // namespace rooflab::kernels::ROOFLAB_ISA
