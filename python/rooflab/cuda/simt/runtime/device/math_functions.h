// CUDA's functions of numbers, by those of the C library. The fast ones (__expf) are as exact as the others here.
#pragma once

#include "base.h"

RL_INLINE unsigned rl_float_bits(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
RL_INLINE float rl_bits_float(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define HUGE_VALF (__builtin_inff())
#define CUDART_INF_F (__builtin_inff())
#define CUDART_NAN_F (__builtin_nanf(""))
#define CUDART_PI_F 3.141592654f
#define M_PI 3.14159265358979323846
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_EPSILON __DBL_EPSILON__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (2u * __INT_MAX__ + 1)
#define LLONG_MAX __LONG_LONG_MAX__

#define RL_UNARY(NAME)                      \
  extern "C" float NAME##f(float) noexcept; \
  extern "C" double NAME(double) noexcept;  \
  RL_INLINE float NAME(float x) { return NAME##f(x); }
#define RL_BINARY(NAME)                            \
  extern "C" float NAME##f(float, float) noexcept; \
  extern "C" double NAME(double, double) noexcept; \
  RL_INLINE float NAME(float x, float y) { return NAME##f(x, y); }
RL_UNARY(acos)
RL_UNARY(acosh)
RL_UNARY(asin)
RL_UNARY(asinh)
RL_UNARY(atan)
RL_UNARY(atanh)
RL_UNARY(cbrt)
RL_UNARY(ceil)
RL_UNARY(cos)
RL_UNARY(cosh)
RL_UNARY(erf)
RL_UNARY(erfc)
RL_UNARY(exp)
RL_UNARY(exp2)
RL_UNARY(expm1)
RL_UNARY(fabs)
RL_UNARY(floor)
RL_UNARY(lgamma)
RL_UNARY(log)
RL_UNARY(log10)
RL_UNARY(log1p)
RL_UNARY(log2)
RL_UNARY(nearbyint)
RL_UNARY(rint)
RL_UNARY(round)
RL_UNARY(sin)
RL_UNARY(sinh)
RL_UNARY(sqrt)
RL_UNARY(tan)
RL_UNARY(tanh)
RL_UNARY(tgamma)
RL_UNARY(trunc)
RL_BINARY(atan2)
RL_BINARY(copysign)
RL_BINARY(fdim)
RL_BINARY(fmax)
RL_BINARY(fmin)
RL_BINARY(fmod)
RL_BINARY(hypot)
RL_BINARY(pow)
RL_BINARY(remainder)
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
RL_INLINE float fma(float x, float y, float z) { return fmaf(x, y, z); }
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;

RL_INLINE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
RL_INLINE double rsqrt(double x) { return 1.0 / sqrt(x); }
RL_INLINE float rsqrt(float x) { return rsqrtf(x); }
RL_INLINE void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
RL_INLINE void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
RL_INLINE float exp10f(float x) { return powf(10.0f, x); }

RL_INLINE float __expf(float x) { return expf(x); }
RL_INLINE float __exp10f(float x) { return exp10f(x); }
RL_INLINE float __logf(float x) { return logf(x); }
RL_INLINE float __log2f(float x) { return log2f(x); }
RL_INLINE float __log10f(float x) { return log10f(x); }
RL_INLINE float __powf(float x, float y) { return powf(x, y); }
RL_INLINE float __sinf(float x) { return sinf(x); }
RL_INLINE float __cosf(float x) { return cosf(x); }
RL_INLINE float __tanf(float x) { return tanf(x); }
RL_INLINE float __fdividef(float x, float y) { return x / y; }
RL_INLINE float __fdiv_rn(float x, float y) { return x / y; }
RL_INLINE float __frcp_rn(float x) { return 1.0f / x; }
RL_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
RL_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }
RL_INLINE float __fadd_rn(float x, float y) { return x + y; }
RL_INLINE float __fsub_rn(float x, float y) { return x - y; }
RL_INLINE float __fmul_rn(float x, float y) { return x * y; }
RL_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
RL_INLINE float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

RL_INLINE bool isnan(float x) { return x != x; }
RL_INLINE bool isnan(double x) { return x != x; }
RL_INLINE bool isinf(float x) { return fabsf(x) == INFINITY; }
RL_INLINE bool isinf(double x) { return fabs(x) == INFINITY; }
RL_INLINE bool isfinite(float x) { return fabsf(x) < INFINITY; }
RL_INLINE bool isfinite(double x) { return fabs(x) < INFINITY; }
RL_INLINE bool signbit(float x) { return rl_float_bits(x) >> 31; }

RL_INLINE int abs(int x) { return x < 0 ? -x : x; }
RL_INLINE long abs(long x) { return x < 0 ? -x : x; }
RL_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
RL_INLINE long long llabs(long long x) { return x < 0 ? -x : x; }
RL_INLINE float abs(float x) { return fabsf(x); }
RL_INLINE double abs(double x) { return fabs(x); }

// The common type of two numbers is that of their sum, except that small integers become int.
#define RL_ORDER(TYPE)                                         \
  RL_INLINE TYPE min(TYPE x, TYPE y) { return y < x ? y : x; } \
  RL_INLINE TYPE max(TYPE x, TYPE y) { return x < y ? y : x; }
RL_ORDER(int)
RL_ORDER(unsigned)
RL_ORDER(long)
RL_ORDER(unsigned long)
RL_ORDER(long long)
RL_ORDER(unsigned long long)
RL_INLINE float min(float x, float y) { return fminf(x, y); }
RL_INLINE float max(float x, float y) { return fmaxf(x, y); }
RL_INLINE double min(double x, double y) { return fmin(x, y); }
RL_INLINE double max(double x, double y) { return fmax(x, y); }
#define RL_MIXED(A, B, WIDE)                                     \
  RL_INLINE WIDE min(A x, B y) { return min((WIDE)x, (WIDE)y); } \
  RL_INLINE WIDE min(B x, A y) { return min((WIDE)x, (WIDE)y); } \
  RL_INLINE WIDE max(A x, B y) { return max((WIDE)x, (WIDE)y); } \
  RL_INLINE WIDE max(B x, A y) { return max((WIDE)x, (WIDE)y); }
RL_MIXED(int, unsigned, unsigned)
RL_MIXED(int, long, long)
RL_MIXED(int, long long, long long)
RL_MIXED(int, unsigned long, unsigned long)
RL_MIXED(unsigned, unsigned long, unsigned long)
RL_MIXED(float, double, double)

RL_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
RL_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
RL_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
RL_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
RL_INLINE int __ffs(int x) { return __builtin_ffs(x); }
RL_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
RL_INLINE unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
RL_INLINE int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
RL_INLINE int __mulhi(int x, int y) { return (int)((long)x * y >> 32); }
RL_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long)x * y >> 32); }
RL_INLINE int __float_as_int(float x) { return (int)rl_float_bits(x); }
RL_INLINE unsigned __float_as_uint(float x) { return rl_float_bits(x); }
RL_INLINE float __int_as_float(int x) { return rl_bits_float((unsigned)x); }
RL_INLINE float __uint_as_float(unsigned x) { return rl_bits_float(x); }
RL_INLINE int __float2int_rn(float x) { return (int)rintf(x); }
RL_INLINE int __float2int_rd(float x) { return (int)floorf(x); }
RL_INLINE int __float2int_ru(float x) { return (int)ceilf(x); }
RL_INLINE int __float2int_rz(float x) { return (int)x; }
RL_INLINE float __int2float_rn(int x) { return (float)x; }
