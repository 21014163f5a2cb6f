// half and __nv_bfloat16: 16 bits in memory, computed as float and rounded after each operation.
#pragma once

#include "integers.h"
#include "vectors.h"

template <bool IsBrain>
struct rl_float16 {
  unsigned short bits;

  rl_float16() = default;
  RL_INLINE rl_float16(float value) : bits(IsBrain ? rl_to_bfloat16(value) : rl_to_half(value)) {}
  RL_INLINE rl_float16(double value) : rl_float16(rl_to_odd(value)) {}
  RL_INLINE rl_float16(int value) : rl_float16((double)value) {}
  RL_INLINE rl_float16(unsigned value) : rl_float16((double)value) {}
  RL_INLINE rl_float16(long value) : rl_float16((double)value) {}
  RL_INLINE rl_float16(unsigned long value) : rl_float16((double)value) {}
  RL_INLINE rl_float16(long long value) : rl_float16((double)value) {}
  RL_INLINE rl_float16(unsigned long long value) : rl_float16((double)value) {}
  RL_INLINE operator float() const { return IsBrain ? rl_from_bfloat16(bits) : rl_from_half(bits); }

  RL_INLINE rl_float16& operator+=(rl_float16 y) { return *this = *this + y; }
  RL_INLINE rl_float16& operator-=(rl_float16 y) { return *this = *this - y; }
  RL_INLINE rl_float16& operator*=(rl_float16 y) { return *this = *this * y; }
  RL_INLINE rl_float16& operator/=(rl_float16 y) { return *this = *this / y; }
  RL_INLINE rl_float16& operator++() { return *this += 1; }
  RL_INLINE rl_float16& operator--() { return *this -= 1; }
  RL_INLINE rl_float16 operator++(int) {
    const rl_float16 before = *this;
    *this += 1;
    return before;
  }
  RL_INLINE rl_float16 operator--(int) {
    const rl_float16 before = *this;
    *this -= 1;
    return before;
  }
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
RL_INLINE half __uint2half_rn(unsigned x) { return x; }
RL_INLINE half __short2half_rn(short x) { return x; }
RL_INLINE half __ushort2half_rn(unsigned short x) { return x; }
RL_INLINE half __ll2half_rn(long long x) { return x; }
RL_INLINE half __ull2half_rn(unsigned long long x) { return x; }
RL_INLINE float __half2float(half x) { return x; }
RL_INLINE half2 make_half2(half x, half y) { return half2(x, y); }
RL_INLINE half2 __float2half2_rn(float x) { return half2(x, x); }
RL_INLINE half2 __floats2half2_rn(float x, float y) { return half2(x, y); }
RL_INLINE half2 __float22half2_rn(float2 x) { return half2(x.x, x.y); }
RL_INLINE float2 __half22float2(half2 x) { return float2(x.x, x.y); }
RL_INLINE __nv_bfloat16 __float2bfloat16(float x) { return x; }
RL_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
RL_INLINE __nv_bfloat16 __double2bfloat16(double x) { return x; }
RL_INLINE __nv_bfloat16 __int2bfloat16_rn(int x) { return x; }
RL_INLINE __nv_bfloat16 __uint2bfloat16_rn(unsigned x) { return x; }
RL_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
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

RL_INLINE short __half_as_short(half x) { return (short)x.bits; }
RL_INLINE half __short_as_half(short x) { return __ushort_as_half((unsigned short)x); }
RL_INLINE short __bfloat16_as_short(__nv_bfloat16 x) { return (short)x.bits; }
RL_INLINE __nv_bfloat16 __short_as_bfloat16(short x) { return __ushort_as_bfloat16((unsigned short)x); }
RL_CONVERSION(__half2int, half, int)
RL_CONVERSION(__half2uint, half, unsigned)
RL_CONVERSION(__half2short, half, short)
RL_CONVERSION(__half2ushort, half, unsigned short)
RL_CONVERSION(__half2ll, half, long long)
RL_CONVERSION(__bfloat162int, __nv_bfloat16, int)
RL_CONVERSION(__bfloat162uint, __nv_bfloat16, unsigned)

// Functions that exist for both types, and for two values at once.
#define RL_HALF_FUNCTIONS(T)                                                                                 \
  RL_INLINE T __hadd(T x, T y) { return x + y; }                                                             \
  RL_INLINE T __hsub(T x, T y) { return x - y; }                                                             \
  RL_INLINE T __hmul(T x, T y) { return x * y; }                                                             \
  RL_INLINE T __hdiv(T x, T y) { return x / y; }                                                             \
  RL_INLINE T __hfma(T x, T y, T z) { return rl_fused(x, y, z); }                                            \
  RL_INLINE T __hneg(T x) { return -x; }                                                                     \
  RL_INLINE T __habs(T x) { return fabsf(x); }                                                               \
  RL_INLINE T __hmax(T x, T y) { return fmaxf(x, y); }                                                       \
  RL_INLINE T __hmin(T x, T y) { return fminf(x, y); }                                                       \
  RL_INLINE bool __hgt(T x, T y) { return x > y; }                                                           \
  RL_INLINE bool __hge(T x, T y) { return x >= y; }                                                          \
  RL_INLINE bool __hlt(T x, T y) { return x < y; }                                                           \
  RL_INLINE bool __hle(T x, T y) { return x <= y; }                                                          \
  RL_INLINE bool __heq(T x, T y) { return x == y; }                                                          \
  RL_INLINE bool __hne(T x, T y) { return x != y; }                                                          \
  RL_INLINE bool __hisnan(T x) { return isnan((float)x); }                                                   \
  RL_INLINE T hexp(T x) { return expf(x); }                                                                  \
  RL_INLINE T hexp2(T x) { return exp2f(x); }                                                                \
  RL_INLINE T hexp10(T x) { return exp10f(x); }                                                              \
  RL_INLINE T hlog(T x) { return logf(x); }                                                                  \
  RL_INLINE T hlog2(T x) { return log2f(x); }                                                                \
  RL_INLINE T hlog10(T x) { return log10f(x); }                                                              \
  RL_INLINE T hsin(T x) { return sinf(x); }                                                                  \
  RL_INLINE T hcos(T x) { return cosf(x); }                                                                  \
  RL_INLINE T htanh(T x) { return tanhf(x); }                                                                \
  RL_INLINE T hfloor(T x) { return floorf(x); }                                                              \
  RL_INLINE T hceil(T x) { return ceilf(x); }                                                                \
  RL_INLINE T hrint(T x) { return rintf(x); }                                                                \
  RL_INLINE T htrunc(T x) { return truncf(x); }                                                              \
  RL_INLINE T hsqrt(T x) { return sqrtf(x); }                                                                \
  RL_INLINE T hrsqrt(T x) { return rsqrtf(x); }                                                              \
  RL_INLINE T hrcp(T x) { return 1.0f / (float)x; }                                                          \
  RL_INLINE rl_vector<T, 2> __hadd2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x + y.x, x.y + y.y}; } \
  RL_INLINE rl_vector<T, 2> __hsub2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x - y.x, x.y - y.y}; } \
  RL_INLINE rl_vector<T, 2> __hmul2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x * y.x, x.y * y.y}; } \
  RL_INLINE rl_vector<T, 2> __hfma2(rl_vector<T, 2> x, rl_vector<T, 2> y, rl_vector<T, 2> z) {               \
    return {__hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y)};                                                   \
  }                                                                                                          \
  RL_INLINE rl_vector<T, 2> __h2div(rl_vector<T, 2> x, rl_vector<T, 2> y) { return {x.x / y.x, x.y / y.y}; } \
  RL_INLINE rl_vector<T, 2> __hneg2(rl_vector<T, 2> x) { return {-x.x, -x.y}; }                              \
  RL_INLINE rl_vector<T, 2> __habs2(rl_vector<T, 2> x) { return {__habs(x.x), __habs(x.y)}; }                \
  RL_INLINE rl_vector<T, 2> __hmax2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                  \
    return {__hmax(x.x, y.x), __hmax(x.y, y.y)};                                                             \
  }                                                                                                          \
  RL_INLINE rl_vector<T, 2> __hmin2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                  \
    return {__hmin(x.x, y.x), __hmin(x.y, y.y)};                                                             \
  }                                                                                                          \
  RL_INLINE rl_vector<T, 2> operator-(rl_vector<T, 2> x) { return __hneg2(x); }                              \
  RL_INLINE rl_vector<T, 2> operator+(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hadd2(x, y); }        \
  RL_INLINE rl_vector<T, 2> operator-(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hsub2(x, y); }        \
  RL_INLINE rl_vector<T, 2> operator*(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hmul2(x, y); }        \
  RL_INLINE rl_vector<T, 2> operator/(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __h2div(x, y); }        \
  RL_INLINE rl_vector<T, 2>& operator+=(rl_vector<T, 2>& x, rl_vector<T, 2> y) { return x = x + y; }         \
  RL_INLINE rl_vector<T, 2>& operator-=(rl_vector<T, 2>& x, rl_vector<T, 2> y) { return x = x - y; }         \
  RL_INLINE rl_vector<T, 2>& operator*=(rl_vector<T, 2>& x, rl_vector<T, 2> y) { return x = x * y; }         \
  RL_INLINE rl_vector<T, 2>& operator/=(rl_vector<T, 2>& x, rl_vector<T, 2> y) { return x = x / y; }         \
  RL_INLINE bool operator==(rl_vector<T, 2> x, rl_vector<T, 2> y) { return (x.x == y.x) & (x.y == y.y); }    \
  RL_INLINE bool operator!=(rl_vector<T, 2> x, rl_vector<T, 2> y) { return (x.x != y.x) | (x.y != y.y); }    \
  RL_INLINE rl_vector<T, 2> h2exp(rl_vector<T, 2> x) { return {hexp(x.x), hexp(x.y)}; }                      \
  RL_INLINE rl_vector<T, 2> h2exp2(rl_vector<T, 2> x) { return {hexp2(x.x), hexp2(x.y)}; }                   \
  RL_INLINE rl_vector<T, 2> h2log(rl_vector<T, 2> x) { return {hlog(x.x), hlog(x.y)}; }                      \
  RL_INLINE rl_vector<T, 2> h2log2(rl_vector<T, 2> x) { return {hlog2(x.x), hlog2(x.y)}; }                   \
  RL_INLINE rl_vector<T, 2> h2sqrt(rl_vector<T, 2> x) { return {hsqrt(x.x), hsqrt(x.y)}; }                   \
  RL_INLINE rl_vector<T, 2> h2rsqrt(rl_vector<T, 2> x) { return {hrsqrt(x.x), hrsqrt(x.y)}; }                \
  RL_INLINE rl_vector<T, 2> h2rcp(rl_vector<T, 2> x) { return {hrcp(x.x), hrcp(x.y)}; }                      \
  RL_INLINE rl_vector<T, 2> h2sin(rl_vector<T, 2> x) { return {hsin(x.x), hsin(x.y)}; }                      \
  RL_INLINE rl_vector<T, 2> h2cos(rl_vector<T, 2> x) { return {hcos(x.x), hcos(x.y)}; }                      \
  RL_INLINE rl_vector<T, 2> __hgt2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__hgt(x.x, y.x), (int)__hgt(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hbgt2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hgt(x.x, y.x) & __hgt(x.y, y.y); } \
  RL_INLINE rl_vector<T, 2> __hge2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__hge(x.x, y.x), (int)__hge(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hbge2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hge(x.x, y.x) & __hge(x.y, y.y); } \
  RL_INLINE rl_vector<T, 2> __hlt2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__hlt(x.x, y.x), (int)__hlt(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hblt2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hlt(x.x, y.x) & __hlt(x.y, y.y); } \
  RL_INLINE rl_vector<T, 2> __hle2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__hle(x.x, y.x), (int)__hle(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hble2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hle(x.x, y.x) & __hle(x.y, y.y); } \
  RL_INLINE rl_vector<T, 2> __heq2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__heq(x.x, y.x), (int)__heq(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hbeq2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __heq(x.x, y.x) & __heq(x.y, y.y); } \
  RL_INLINE rl_vector<T, 2> __hne2(rl_vector<T, 2> x, rl_vector<T, 2> y) {                                   \
    return {(int)__hne(x.x, y.x), (int)__hne(x.y, y.y)};                                                     \
  }                                                                                                          \
  RL_INLINE bool __hbne2(rl_vector<T, 2> x, rl_vector<T, 2> y) { return __hne(x.x, y.x) & __hne(x.y, y.y); } \
  RL_INLINE float __low2float(rl_vector<T, 2> x) { return x.x; }                                             \
  RL_INLINE float __high2float(rl_vector<T, 2> x) { return x.y; }
RL_HALF_FUNCTIONS(half)
RL_HALF_FUNCTIONS(__nv_bfloat16)
RL_INLINE half __low2half(half2 x) { return x.x; }
RL_INLINE half __high2half(half2 x) { return x.y; }
RL_INLINE half2 __low2half2(half2 x) { return half2(x.x, x.x); }
RL_INLINE half2 __high2half2(half2 x) { return half2(x.y, x.y); }
RL_INLINE half2 __lowhigh2highlow(half2 x) { return half2(x.y, x.x); }
RL_INLINE half2 __lows2half2(half2 x, half2 y) { return half2(x.x, y.x); }
RL_INLINE half2 __highs2half2(half2 x, half2 y) { return half2(x.y, y.y); }
RL_INLINE half2 __half2half2(half x) { return half2(x, x); }
RL_INLINE half2 __halves2half2(half x, half y) { return half2(x, y); }
RL_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
RL_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
RL_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
RL_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
