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
#define CUDART_INF (__builtin_inf())
#define CUDART_NAN (__builtin_nan(""))
#define CUDART_PI M_PI
#define HUGE_VAL (__builtin_inf())
#define M_E 2.71828182845904523536
#define M_LOG2E 1.44269504088896340736
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_SQRT2 1.41421356237309504880

template <class T>
constexpr bool rl_is_number = false;
#define RL_IS_NUMBER(TYPE) \
  template <>              \
  constexpr bool rl_is_number<TYPE> = true;
RL_IS_NUMBER(bool)
RL_IS_NUMBER(char)
RL_IS_NUMBER(signed char)
RL_IS_NUMBER(unsigned char)
RL_IS_NUMBER(short)
RL_IS_NUMBER(unsigned short)
RL_IS_NUMBER(int)
RL_IS_NUMBER(unsigned)
RL_IS_NUMBER(long)
RL_IS_NUMBER(unsigned long)
RL_IS_NUMBER(long long)
RL_IS_NUMBER(unsigned long long)
RL_IS_NUMBER(float)
RL_IS_NUMBER(double)
template <bool Is>
struct rl_if;
template <>
struct rl_if<true> {
  typedef int type;
};
template <class X, class Y>
using rl_if_numbers = typename rl_if<rl_is_number<X> && rl_is_number<Y>>::type;

#define RL_UNARY(NAME)                                               \
  extern "C" float NAME##f(float) noexcept;                          \
  extern "C" double NAME(double) noexcept;                           \
  RL_INLINE float NAME(float x) { return NAME##f(x); }               \
  RL_INLINE double NAME(int x) { return NAME((double)x); }           \
  RL_INLINE double NAME(unsigned x) { return NAME((double)x); }      \
  RL_INLINE double NAME(long x) { return NAME((double)x); }          \
  RL_INLINE double NAME(unsigned long x) { return NAME((double)x); } \
  RL_INLINE double NAME(long long x) { return NAME((double)x); }
// Two numbers of which not both are float or double are taken as double.
#define RL_BINARY(NAME)                                            \
  extern "C" float NAME##f(float, float) noexcept;                 \
  extern "C" double NAME(double, double) noexcept;                 \
  RL_INLINE float NAME(float x, float y) { return NAME##f(x, y); } \
  template <class X, class Y, rl_if_numbers<X, Y> = 0>             \
  RL_INLINE double NAME(X x, Y y) {                                \
    return NAME((double)x, (double)y);                             \
  }
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
RL_UNARY(logb)
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
RL_BINARY(nextafter)
RL_BINARY(pow)
RL_BINARY(remainder)
RL_INLINE float pow(float x, int n) { return powf(x, (float)n); }
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double fma(double, double, double) noexcept;
RL_INLINE float fma(float x, float y, float z) { return fmaf(x, y, z); }
extern "C" float ldexpf(float, int) noexcept;
extern "C" double ldexp(double, int) noexcept;

RL_INLINE float nanf(const char*) { return NAN; }
RL_INLINE double nan(const char*) { return __builtin_nan(""); }
RL_INLINE bool isnan(float x) { return x != x; }
RL_INLINE bool isnan(double x) { return x != x; }
RL_INLINE bool isinf(float x) { return fabsf(x) == INFINITY; }
RL_INLINE bool isinf(double x) { return fabs(x) == INFINITY; }
RL_INLINE bool isfinite(float x) { return fabsf(x) < INFINITY; }
RL_INLINE bool isfinite(double x) { return fabs(x) < INFINITY; }
RL_INLINE bool signbit(float x) { return rl_float_bits(x) >> 31; }
RL_INLINE bool signbit(double x) { return copysign(1.0, x) < 0; }

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
RL_INLINE double exp10(double x) { return pow(10.0, x); }
RL_INLINE float rcbrtf(float x) { return 1.0f / cbrtf(x); }
RL_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
RL_INLINE float normcdff(float x) { return rl_normcdf(x); }
RL_INLINE float fdividef(float x, float y) { return x / y; }
RL_INLINE float scalbnf(float x, int n) { return ldexpf(x, n); }
RL_INLINE float modff(float x, float* whole) {
  *whole = truncf(x);
  return rl_fraction(x);
}

// The runner computes these, because arithmetic of the kernel is counted.
#define RL_SPECIAL(T, F)                                                                                   \
  RL_INLINE T sinpi##F(T x) { return (T)rl_special(rl_function_sinpi, x, 0, 0, 0); }                       \
  RL_INLINE T cospi##F(T x) { return (T)rl_special(rl_function_cospi, x, 0, 0, 0); }                       \
  RL_INLINE void sincospi##F(T x, T* s, T* c) {                                                            \
    *s = sinpi##F(x);                                                                                      \
    *c = cospi##F(x);                                                                                      \
  }                                                                                                        \
  RL_INLINE T norm3d##F(T x, T y, T z) { return (T)rl_special(rl_function_norm, x, y, z, 0); }             \
  RL_INLINE T norm4d##F(T x, T y, T z, T w) { return (T)rl_special(rl_function_norm, x, y, z, w); }        \
  RL_INLINE T rnorm3d##F(T x, T y, T z) { return (T)(1 / rl_special(rl_function_norm, x, y, z, 0)); }      \
  RL_INLINE T rnorm4d##F(T x, T y, T z, T w) { return (T)(1 / rl_special(rl_function_norm, x, y, z, w)); } \
  RL_INLINE T erfinv##F(T x) { return (T)rl_special(rl_function_erfinv, x, 0, 0, 0); }                     \
  RL_INLINE T erfcinv##F(T x) { return (T)rl_special(rl_function_erfcinv, x, 0, 0, 0); }                   \
  RL_INLINE T normcdfinv##F(T x) { return (T)rl_special(rl_function_normcdfinv, x, 0, 0, 0); }             \
  RL_INLINE T frexp##F(T x, int* exponent) {                                                               \
    *exponent = (int)rl_special(rl_function_exponent, x, 0, 0, 0);                                         \
    return (T)rl_special(rl_function_fraction, x, 0, 0, 0);                                                \
  }                                                                                                        \
  RL_INLINE int ilogb##F(T x) { return (int)rl_special(rl_function_ilogb, x, 0, 0, 0); }
RL_SPECIAL(double, )
RL_SPECIAL(float, f)

RL_INLINE float __expf(float x) { return expf(x); }
RL_INLINE float __exp10f(float x) { return exp10f(x); }
RL_INLINE float __logf(float x) { return logf(x); }
RL_INLINE float __log2f(float x) { return log2f(x); }
RL_INLINE float __log10f(float x) { return log10f(x); }
RL_INLINE float __powf(float x, float y) { return powf(x, y); }
RL_INLINE float __sinf(float x) { return sinf(x); }
RL_INLINE float __cosf(float x) { return cosf(x); }
RL_INLINE float __tanf(float x) { return tanf(x); }
RL_INLINE void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
RL_INLINE float __fdividef(float x, float y) { return x / y; }
RL_INLINE float __fdiv_rn(float x, float y) { return x / y; }
RL_INLINE float __frcp_rn(float x) { return 1.0f / x; }
RL_INLINE float __fsqrt_rn(float x) { return sqrtf(x); }
RL_INLINE float __frsqrt_rn(float x) { return rsqrtf(x); }
RL_INLINE float __fadd_rn(float x, float y) { return x + y; }
RL_INLINE float __fsub_rn(float x, float y) { return x - y; }
RL_INLINE float __fmul_rn(float x, float y) { return x * y; }
RL_INLINE float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
RL_INLINE double __dadd_rn(double x, double y) { return x + y; }
RL_INLINE double __dsub_rn(double x, double y) { return x - y; }
RL_INLINE double __dmul_rn(double x, double y) { return x * y; }
RL_INLINE double __ddiv_rn(double x, double y) { return x / y; }
RL_INLINE double __drcp_rn(double x) { return 1.0 / x; }
RL_INLINE double __dsqrt_rn(double x) { return sqrt(x); }
RL_INLINE double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
RL_INLINE float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }

RL_INLINE int abs(int x) { return x < 0 ? -x : x; }
RL_INLINE long abs(long x) { return x < 0 ? -x : x; }
RL_INLINE long long abs(long long x) { return x < 0 ? -x : x; }
RL_INLINE long labs(long x) { return x < 0 ? -x : x; }
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
RL_MIXED(long, unsigned long, unsigned long)
RL_MIXED(long long, unsigned long long, unsigned long long)
RL_MIXED(float, double, double)
RL_INLINE unsigned umin(unsigned x, unsigned y) { return min(x, y); }
RL_INLINE unsigned umax(unsigned x, unsigned y) { return max(x, y); }
RL_INLINE long long llmin(long long x, long long y) { return min(x, y); }
RL_INLINE long long llmax(long long x, long long y) { return max(x, y); }
RL_INLINE unsigned long long ullmin(unsigned long long x, unsigned long long y) { return min(x, y); }
RL_INLINE unsigned long long ullmax(unsigned long long x, unsigned long long y) { return max(x, y); }
