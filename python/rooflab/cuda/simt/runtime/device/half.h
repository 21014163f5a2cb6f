// half and __nv_bfloat16: 16 bits in memory, computed as float and rounded after each operation.
#pragma once

#include "math_functions.h"
#include "vectors.h"

template <bool IsBrain>
struct rl_float16 {
  unsigned short bits;

  rl_float16() = default;
  RL_INLINE rl_float16(const rl_float16& from) : bits(from.bits) {}  // one load of a number, like any other
  RL_INLINE rl_float16& operator=(const rl_float16& from) {
    bits = from.bits;
    return *this;
  }
  RL_INLINE rl_float16(float value) : bits(IsBrain ? rl_to_bfloat16(value) : rl_to_half(value)) {}
  RL_INLINE rl_float16(double value) : rl_float16((float)value) {}
  RL_INLINE rl_float16(int value) : rl_float16((float)value) {}
  RL_INLINE rl_float16(unsigned value) : rl_float16((float)value) {}
  RL_INLINE rl_float16(long value) : rl_float16((float)value) {}
  RL_INLINE operator float() const { return IsBrain ? rl_from_bfloat16(bits) : rl_from_half(bits); }

  RL_INLINE rl_float16& operator+=(rl_float16 y) { return *this = *this + y; }
  RL_INLINE rl_float16& operator-=(rl_float16 y) { return *this = *this - y; }
  RL_INLINE rl_float16& operator*=(rl_float16 y) { return *this = *this * y; }
  RL_INLINE rl_float16& operator/=(rl_float16 y) { return *this = *this / y; }
  friend RL_INLINE rl_float16 operator+(rl_float16 x, rl_float16 y) { return (float)x + (float)y; }
  friend RL_INLINE rl_float16 operator-(rl_float16 x, rl_float16 y) { return (float)x - (float)y; }
  friend RL_INLINE rl_float16 operator*(rl_float16 x, rl_float16 y) { return (float)x * (float)y; }
  friend RL_INLINE rl_float16 operator/(rl_float16 x, rl_float16 y) { return (float)x / (float)y; }
  friend RL_INLINE rl_float16 operator-(rl_float16 x) {
    x.bits ^= 0x8000;
    return x;
  }
  friend RL_INLINE bool operator==(rl_float16 x, rl_float16 y) { return (float)x == (float)y; }
  friend RL_INLINE bool operator!=(rl_float16 x, rl_float16 y) { return (float)x != (float)y; }
  friend RL_INLINE bool operator<(rl_float16 x, rl_float16 y) { return (float)x < (float)y; }
  friend RL_INLINE bool operator>(rl_float16 x, rl_float16 y) { return (float)x > (float)y; }
  friend RL_INLINE bool operator<=(rl_float16 x, rl_float16 y) { return (float)x <= (float)y; }
  friend RL_INLINE bool operator>=(rl_float16 x, rl_float16 y) { return (float)x >= (float)y; }
};
typedef rl_float16<false> half;
typedef rl_float16<false> __half;
typedef rl_float16<true> __nv_bfloat16;
typedef rl_float16<true> nv_bfloat16;
typedef rl_vector<half, 2> half2;
typedef rl_vector<half, 2> __half2;
typedef rl_vector<__nv_bfloat16, 2> __nv_bfloat162;
typedef rl_vector<__nv_bfloat16, 2> nv_bfloat162;

RL_INLINE half __float2half(float x) { return x; }
RL_INLINE half __float2half_rn(float x) { return x; }
RL_INLINE half __double2half(double x) { return x; }
RL_INLINE half __int2half_rn(int x) { return x; }
RL_INLINE float __half2float(half x) { return x; }
RL_INLINE half2 make_half2(half x, half y) { return half2(x, y); }
RL_INLINE half2 __float2half2_rn(float x) { return half2(x, x); }
RL_INLINE half2 __floats2half2_rn(float x, float y) { return half2(x, y); }
RL_INLINE half2 __float22half2_rn(float2 x) { return half2(x.x, x.y); }
RL_INLINE float2 __half22float2(half2 x) { return float2(x.x, x.y); }
RL_INLINE __nv_bfloat16 __float2bfloat16(float x) { return x; }
RL_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
RL_INLINE float __bfloat162float(__nv_bfloat16 x) { return x; }
RL_INLINE __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(x, x); }
RL_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return __nv_bfloat162(x, y); }
RL_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 x) { return __nv_bfloat162(x.x, x.y); }
RL_INLINE float2 __bfloat1622float2(__nv_bfloat162 x) { return float2(x.x, x.y); }
RL_INLINE unsigned short __half_as_ushort(half x) { return x.bits; }
RL_INLINE half __ushort_as_half(unsigned short x) {
  half made;
  made.bits = x;
  return made;
}
RL_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
RL_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) {
  __nv_bfloat16 made;
  made.bits = x;
  return made;
}

// Functions that exist for both types, and for two values at once.
#define RL_HALF_FUNCTIONS(T)                                                                                 \
  RL_INLINE T __hadd(T x, T y) { return x + y; }                                                             \
  RL_INLINE T __hsub(T x, T y) { return x - y; }                                                             \
  RL_INLINE T __hmul(T x, T y) { return x * y; }                                                             \
  RL_INLINE T __hdiv(T x, T y) { return x / y; }                                                             \
  RL_INLINE T __hfma(T x, T y, T z) { return fmaf(x, y, z); }                                                \
  RL_INLINE T __hneg(T x) { return -x; }                                                                     \
  RL_INLINE T __habs(T x) { return fabsf(x); }                                                               \
  RL_INLINE T __hmax(T x, T y) { return fmaxf(x, y); }                                                       \
  RL_INLINE T __hmin(T x, T y) { return fminf(x, y); }                                                       \
  RL_INLINE bool __hgt(T x, T y) { return x > y; }                                                           \
  RL_INLINE bool __hge(T x, T y) { return x >= y; }                                                          \
  RL_INLINE bool __hlt(T x, T y) { return x < y; }                                                           \
  RL_INLINE bool __hle(T x, T y) { return x <= y; }                                                          \
  RL_INLINE bool __heq(T x, T y) { return x == y; }                                                          \
  RL_INLINE bool __hisnan(T x) { return isnan((float)x); }                                                   \
  RL_INLINE T hexp(T x) { return expf(x); }                                                                  \
  RL_INLINE T hlog(T x) { return logf(x); }                                                                  \
  RL_INLINE T hsqrt(T x) { return sqrtf(x); }                                                                \
  RL_INLINE T hrsqrt(T x) { return rsqrtf(x); }                                                              \
  RL_INLINE T hrcp(T x) { return 1.0f / (float)x; }                                                          \
  RL_INLINE rl_vector<T, 2> __hadd2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x + y.x, x.y + y.y}; } \
  RL_INLINE rl_vector<T, 2> __hsub2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x - y.x, x.y - y.y}; } \
  RL_INLINE rl_vector<T, 2> __hmul2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x * y.x, x.y * y.y}; } \
  RL_INLINE rl_vector<T, 2> __hfma2(rl_vector<T, 2> x, rl_vector<T, 2> y, rl_vector<T, 2> z) {               \
    return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)};                                                   \
  }                                                                                                          \
  RL_INLINE rl_vector<T, 2> operator+(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hadd2(x, y); }        \
  RL_INLINE rl_vector<T, 2> operator-(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hsub2(x, y); }        \
  RL_INLINE rl_vector<T, 2> operator*(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hmul2(x, y); }        \
  RL_INLINE float __low2float(rl_vector<T, 2> x) { return x.x; }                                             \
  RL_INLINE float __high2float(rl_vector<T, 2> x) { return x.y; }
RL_HALF_FUNCTIONS(half)
RL_HALF_FUNCTIONS(__nv_bfloat16)
RL_INLINE half __low2half(half2 x) { return x.x; }
RL_INLINE half __high2half(half2 x) { return x.y; }
RL_INLINE half2 __half2half2(half x) { return half2(x, x); }
RL_INLINE half2 __halves2half2(half x, half y) { return half2(x, y); }
RL_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
RL_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
RL_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
RL_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
