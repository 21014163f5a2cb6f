// CUDA's functions of whole numbers and of bits, the limits of types, and conversions of floats to integers.
#pragma once

#include "math_functions.h"

#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN -128
#define CHAR_MAX __SCHAR_MAX__
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN -32768
#define USHRT_MAX 65535
#define INT_MAX __INT_MAX__
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX (2u * INT_MAX + 1)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX (2ul * LONG_MAX + 1)
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-LLONG_MAX - 1)
#define ULLONG_MAX (2ull * LLONG_MAX + 1)
#define INT8_MAX SCHAR_MAX
#define INT8_MIN SCHAR_MIN
#define UINT8_MAX UCHAR_MAX
#define INT16_MAX SHRT_MAX
#define INT16_MIN SHRT_MIN
#define UINT16_MAX USHRT_MAX
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
#define NULL nullptr

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
RL_INLINE unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
RL_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned which) {
  const unsigned long both = (unsigned long)y << 32 | x;
  return (unsigned)((both >> 8 * (which & 7) & 0xff) | (both >> 8 * (which >> 4 & 7) & 0xff) << 8 |
                    (both >> 8 * (which >> 8 & 7) & 0xff) << 16 | (both >> 8 * (which >> 12 & 7) & 0xff) << 24);
}
RL_INLINE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long)high << 32 | low) << (by & 31) >> 32);
}
RL_INLINE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long)high << 32 | low) >> (by & 31));
}
RL_INLINE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long)high << 32 | low) << umin(by, 32u) >> 32);
}
RL_INLINE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return (unsigned)(((unsigned long)high << 32 | low) >> umin(by, 32u));
}
RL_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
RL_INLINE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
RL_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
RL_INLINE int __hadd(int x, int y) { return (int)(((long)x + y) >> 1); }
RL_INLINE int __rhadd(int x, int y) { return (int)(((long)x + y + 1) >> 1); }
RL_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long)x + y) >> 1); }
RL_INLINE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long)x + y + 1) >> 1); }
RL_INLINE unsigned __sad(int x, int y, unsigned z) { return (unsigned)labs((long)x - y) + z; }
RL_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return (unsigned)labs((long)x - (long)y) + z; }
#define RL_DOT(SUM, BYTE)                                                                            \
  RL_INLINE SUM __dp4a(SUM x, SUM y, SUM z) {                                                        \
    return (BYTE)x * (BYTE)y + (BYTE)(x >> 8) * (BYTE)(y >> 8) + (BYTE)(x >> 16) * (BYTE)(y >> 16) + \
           (BYTE)(x >> 24) * (BYTE)(y >> 24) + z;                                                    \
  }
RL_DOT(int, signed char)
RL_DOT(unsigned, unsigned char)

RL_INLINE int __float_as_int(float x) { return (int)rl_float_bits(x); }
RL_INLINE unsigned __float_as_uint(float x) { return rl_float_bits(x); }
RL_INLINE float __int_as_float(int x) { return rl_bits_float((unsigned)x); }
RL_INLINE float __uint_as_float(unsigned x) { return rl_bits_float(x); }
RL_INLINE long long __double_as_longlong(double x) {
  long long bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
RL_INLINE double __longlong_as_double(long long bits) {
  double value;
  __builtin_memcpy(&value, &bits, 8);
  return value;
}
RL_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
RL_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
RL_INLINE double __hiloint2double(int high, int low) {
  return __longlong_as_double((long long)high << 32 | (unsigned)low);
}

RL_INLINE float __int2float_rn(int x) { return (float)x; }
RL_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
RL_INLINE float __ll2float_rn(long long x) { return (float)x; }
RL_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
RL_INLINE double __int2double_rn(int x) { return x; }
RL_INLINE double __uint2double_rn(unsigned x) { return x; }
RL_INLINE double __ll2double_rn(long long x) { return (double)x; }
RL_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }
RL_INLINE float __double2float_rn(double x) { return (float)x; }

// An integer that has no such value is the nearest one; NaN is 0, or only the highest bit where 64 bits take part.
template <class I, class From>
RL_INLINE I rl_saturated(double x) {
  constexpr unsigned bits = 8 * sizeof(I);
  constexpr unsigned long of_nan = bits == 64 || __is_same(From, double) ? 1ul << (bits - 1) : 0;
  return (I)rl_to_integer(x, bits, (I)-1 < (I)0, of_nan);
}
#define RL_CONVERSION(NAME, FROM, TO)                                                 \
  RL_INLINE TO NAME##_rn(FROM x) { return rl_saturated<TO, FROM>(rint((double)x)); }  \
  RL_INLINE TO NAME##_rz(FROM x) { return rl_saturated<TO, FROM>(trunc((double)x)); } \
  RL_INLINE TO NAME##_rd(FROM x) { return rl_saturated<TO, FROM>(floor((double)x)); } \
  RL_INLINE TO NAME##_ru(FROM x) { return rl_saturated<TO, FROM>(ceil((double)x)); }
RL_CONVERSION(__float2int, float, int)
RL_CONVERSION(__float2uint, float, unsigned)
RL_CONVERSION(__float2ll, float, long long)
RL_CONVERSION(__float2ull, float, unsigned long long)
RL_CONVERSION(__double2int, double, int)
RL_CONVERSION(__double2uint, double, unsigned)
RL_CONVERSION(__double2ll, double, long long)
RL_CONVERSION(__double2ull, double, unsigned long long)
#define RL_TO_LONG(NAME, FROM, ROUND)                                                   \
  RL_INLINE long l##NAME(FROM x) { return rl_saturated<long, FROM>(ROUND((double)x)); } \
  RL_INLINE long long ll##NAME(FROM x) { return l##NAME(x); }
RL_TO_LONG(rintf, float, rint)
RL_TO_LONG(roundf, float, round)
RL_TO_LONG(rint, double, rint)
RL_TO_LONG(round, double, round)
