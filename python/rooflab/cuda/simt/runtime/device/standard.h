// What kernels find in the namespace std: functions of numbers, and the names of integers.
#pragma once

#include "integers.h"
#include "threads.h"

namespace std {
using ::abs;
using ::acos;
using ::acosh;
using ::asin;
using ::asinh;
using ::atan;
using ::atan2;
using ::atanh;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::erf;
using ::erfc;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::fdim;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::int16_t;
using ::int32_t;
using ::int8_t;
using ::intptr_t;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::ldexp;
using ::lgamma;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::memcpy;
using ::memset;
using ::nearbyint;
using ::nextafter;
using ::pow;
using ::ptrdiff_t;
using ::remainder;
using ::rint;
using ::round;
using ::signbit;
using ::sin;
using ::sinh;
using ::size_t;
using ::sqrt;
using ::tan;
using ::tanh;
using ::tgamma;
using ::trunc;
using ::uint16_t;
using ::uint32_t;
using ::uint8_t;
using ::uintptr_t;
#ifndef RL_OWN_int64_t
using ::int64_t;
#endif
#ifndef RL_OWN_uint64_t
using ::uint64_t;
#endif
}  // namespace std
