// What each elementwise op does to one element, for host and device. T is the type computed in: float, double, an
// integer, or a vector of simd.h, whose own exp, sqrt, ... are found by argument-dependent lookup.
#pragma once

#include <cmath>
#include <cstdlib>
#include <type_traits>

#include "kernels/common/host_device.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/gelu/gelu_function.h"

namespace rooflab::kernels {

template <class T>
ROOFLAB_HOST_DEVICE T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// The larger and the smaller of two numbers; NaN where either is. A float's on the GPU is one instruction, which takes
// +0 for larger than -0; elsewhere two zeros are equal, and the result is b.
template <class T>
ROOFLAB_HOST_DEVICE T larger(T a, T b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
#endif
  return select((a > b) | (a != a), a, b);
}
template <class T>
ROOFLAB_HOST_DEVICE T smaller(T a, T b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
    return a;
  }
#endif
  return select((a < b) | (a != a), a, b);
}

// a to the power b, modulo 2^bits; for b < 0 the quotient 1 / a^|b| rounded towards zero (0 for a = 0).
template <class T>
ROOFLAB_HOST_DEVICE T integer_pow(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b < 0) return a == 1 ? T(1) : a == -1 ? (b % 2 ? T(-1) : T(1)) : T(0);
  U result = 1, square = static_cast<U>(a);
  for (U n = static_cast<U>(b); n; n >>= 1, square *= square)
    if (n & 1) result *= square;
  return static_cast<T>(result);
}

// Inside another function two ulp are enough: on the GPU a correctly rounded quotient costs four of these.
template <class T>
ROOFLAB_HOST_DEVICE T fast_quotient(T a, T b) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) return __fdividef(a, b);
#endif
  return a / b;
}

template <class T>
ROOFLAB_HOST_DEVICE T inverse_sqrt(T a) {
#ifdef __CUDA_ARCH__
  return ::rsqrt(a);
#else
  using std::sqrt;
  return T(1) / sqrt(a);
#endif
}

// 1 / (1 + exp(-a)).
template <class T>
ROOFLAB_HOST_DEVICE T sigmoid_of(T a) {
  using std::abs, std::exp;
  const T e = exp(-abs(a));  // at most 1, so the divisor lies in [1, 2], where a fast division is accurate
  return fast_quotient(select(a < T(0), e, T(1)), T(1) + e);
}

// silu(a). Below -750 the sigmoid is 0 in every type, and 0 times -inf would be NaN.
template <class T>
ROOFLAB_HOST_DEVICE T silu_of(T a) {
  a = select(a < T(-750), T(-750), a);
  return a * sigmoid_of(a);
}

// log(1 + e) for e from 0 to 1, with what the sum loses of a small e given back.
template <class T>
ROOFLAB_HOST_DEVICE T log_of_one_plus(T e) {
  using std::log;
  const T sum = T(1) + e;
  return log(sum) + (e - (sum - T(1)));
}
template <class T>
ROOFLAB_HOST_DEVICE T softplus_of(T a) {
  using std::abs, std::exp;
  return select(a > T(0), a, T(0)) + log_of_one_plus(exp(-abs(a)));
}
template <class T>
ROOFLAB_HOST_DEVICE T logsigmoid_of(T a) {
  using std::abs, std::exp;
  return select(a < T(0), a, T(0)) - log_of_one_plus(exp(-abs(a)));
}

// exp(a) - 1 is a product here: the difference would hide a small a.
template <class T>
ROOFLAB_HOST_DEVICE T elu_of(T a, T b) {
  using std::exp, std::tanh;
  const T below = select(a > T(0), T(0), a);
  return select(a > T(0), a, b * ((exp(below) + T(1)) * tanh(T(0.5) * below)));
}

// From the end that is nearer, so that a weight of 0 gives the start exactly, and 1 the end.
template <class T>
ROOFLAB_HOST_DEVICE T lerp_of(T start, T end, T weight) {
  using std::abs;
  const auto is_near = abs(weight) < T(0.5);
  return select(is_near, start, end) + select(is_near, weight, weight - T(1)) * (end - start);
}

// The exponent's share is added last and has few digits, so that powers of 10 give whole numbers, which log10f misses.
template <class T>
ROOFLAB_HOST_DEVICE T log10_of(T a) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float>) {
    const bool is_tiny = a < 0x1p-126f;
    const int bits = __float_as_int(is_tiny ? a * 0x1p23f : a) - 0x3f3504f3;  // now sqrt(1/2) starts a binade
    const float e = static_cast<float>((bits >> 23) - (is_tiny ? 23 : 0));
    const float f = __int_as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    constexpr float kTerms[] = {-0.0785961871f, 0.128816544f, -0.131287552f, 0.14181191f,
                                -0.166245539f,  0.200022863f, -0.250008104f, 0.333333167f};
    float p = 0;
    for (const float term : kTerms) p = fmaf(p, f, term);
    const float square = f * f, small = fmaf(p, square * f, square * -0.5f);
    const float rest = fmaf(f, -1.010305e-8f, fmaf(small, 0.434294492f, e * 4.60503907e-6f));
    const float found = fmaf(e, 0.301025391f, fmaf(f, 0.434294492f, rest));
    return a == 0.0f ? -INFINITY : a > 0.0f ? (a < INFINITY ? found : a) : NAN;
  }
#endif
  using std::log10;
  return log10(a);
}

template <class T>
ROOFLAB_HOST_DEVICE T nan_to_num_of(T a, T high, T low, T nan) {
  const T finite = select(a == T(INFINITY), high, select(a == T(-INFINITY), low, a));
  return select(a != a, nan, finite);
}

// gelu(a) in its tanh form: 0.5 (1 + tanh(u)) is the sigmoid of 2u.
template <class T>
ROOFLAB_HOST_DEVICE T gelu_of(T a) {
  a = select(a < T(kGeluLowest), T(kGeluLowest), a);
  return a * sigmoid_of(a * (T(2 * kGeluScale) + T(2 * kGeluScale * kGeluCubic) * (a * a)));
}

// Whether a to this power needs no logarithm; if so, gives it.
template <class T, class S>
ROOFLAB_HOST_DEVICE bool short_pow(T a, S exponent, T& power) {
  using std::abs, std::sqrt;
  if (exponent == S(2)) {
    power = a * a;
  } else if (exponent == S(3)) {
    power = a * a * a;
  } else if (exponent == S(-1)) {
    power = T(1) / a;
  } else if (exponent == S(-2)) {
    // Exact for small integers, as 1 / (a a) is. Where the square leaves the range of T, the quotient is squared.
    const T square = a * a, quotient = T(1) / a;
    const auto is_in_range = (square >= T(sizeof(S) == 4 ? S(0x1p-126) : S(0x1p-1022))) & (square * T(0) == T(0));
    power = select(is_in_range, T(1) / square, quotient * quotient);
  } else if (exponent == S(0.5) || exponent == S(-0.5)) {
    const T root = select(a * T(0.5) == a, abs(a), sqrt(a));  // zeros and infinities lose their sign
    power = exponent < S(0) ? T(1) / root : root;
  } else {
    return false;
  }
  return true;
}
template <class T>
ROOFLAB_HOST_DEVICE T floating_pow(T a, T b) {
  T power;
  if (short_pow(a, b, power)) return power;
  return a == T(2) ? std::exp2(b) : std::pow(a, b);
}

// Whether a division of 64 bits can be one of 32, which takes less than half the time.
template <class T>
ROOFLAB_HOST_DEVICE bool fits_int32(T a, T b) {
  return sizeof(T) == 8 && a == static_cast<int32_t>(a) && b == static_cast<int32_t>(b);
}

// As Python's // and %: rounds towards minus infinity, and the remainder lies between 0 and b. Integers by 0
// give 0 where check_divisor has not refused them before.
template <class T>
ROOFLAB_HOST_DEVICE T integer_floor_divide(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == -1) return static_cast<T>(U(0) - static_cast<U>(a));  // the quotient of the smallest number does not fit
  if (fits_int32(a, b)) return integer_floor_divide(static_cast<int32_t>(a), static_cast<int32_t>(b));
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
template <class T>
ROOFLAB_HOST_DEVICE T integer_remainder(T a, T b) {
  if (b == 0 || b == -1) return 0;
  if (fits_int32(a, b)) return integer_remainder(static_cast<int32_t>(a), static_cast<int32_t>(b));
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// |a| divided by |b|, the quotient rounded down, and what is left. False where the quotient may not fit the mantissa or
// is no number. Where it fits, its first guess is too large by one at most, so the fused product and sum is exact.
template <class T>
ROOFLAB_HOST_DEVICE bool short_division(T a, T b, T& quotient, T& rest) {
  using std::fma;
  const T top = std::abs(a), bottom = std::abs(b);
  quotient = std::floor(top / bottom);
  if (!(quotient < (sizeof(T) == 4 ? T(0x1p23) : T(0x1p52)))) return false;
  rest = quotient == T(0) ? top : fma(-quotient, bottom, top);  // b may be infinite
  if (rest < T(0)) {
    quotient -= T(1);
    rest += bottom;
  }
  return true;
}
template <class T>
ROOFLAB_HOST_DEVICE T floating_remainder(T a, T b) {
  T quotient, rest;
  rest = short_division(a, b, quotient, rest) ? std::copysign(rest, a) : std::fmod(a, b);
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? rest + b : rest;
}
template <class T>
ROOFLAB_HOST_DEVICE T floating_floor_divide(T a, T b) {
  if (b == T(0)) return a / b;
  T quotient, rest;
  if (short_division(a, b, quotient, rest)) {
    const bool signs_differ = std::copysign(T(1), a) != std::copysign(T(1), b);
    if (signs_differ && rest != T(0)) quotient += T(1);
    return signs_differ ? -quotient : quotient;
  }
  rest = std::fmod(a, b);
  quotient = (a - rest) / b - (rest != T(0) && (rest < T(0)) != (b < T(0)) ? T(1) : T(0));
  if (quotient == T(0)) return std::copysign(T(0), a / b);
  return std::rint(quotient);  // an integer, except for the rounding of (a - rest) / b
}

// -1, 0 or 1; 0 for NaN.
template <class T>
ROOFLAB_HOST_DEVICE T sign_of(T a) {
  return select(a > T(0), T(1), select(a < T(0), T(-1), T(0)));
}

// Integers wrap around, as in two's complement.
template <ElementwiseOp kOp, class T>
ROOFLAB_HOST_DEVICE T evaluate_integer(T a, T b) {
  using enum ElementwiseOp;
  using U = std::make_unsigned_t<T>;
  const U x = static_cast<U>(a), y = static_cast<U>(b);
  if constexpr (kOp == kAdd) return static_cast<T>(x + y);
  if constexpr (kOp == kSub) return static_cast<T>(x - y);
  if constexpr (kOp == kMul) return static_cast<T>(x * y);
  if constexpr (kOp == kPow) return integer_pow(a, b);
  if constexpr (kOp == kMaximum) return a > b ? a : b;
  if constexpr (kOp == kMinimum) return a < b ? a : b;
  if constexpr (kOp == kFloorDivide) return integer_floor_divide(a, b);
  if constexpr (kOp == kRemainder) return integer_remainder(a, b);
  if constexpr (kOp == kNeg) return static_cast<T>(U(0) - x);
  if constexpr (kOp == kAbs) return static_cast<T>(a < 0 ? U(0) - x : x);
  if constexpr (kOp == kRelu) return a < 0 ? T(0) : a;
  if constexpr (kOp == kFloor || kOp == kCeil || kOp == kTrunc || kOp == kRound) return a;
  if constexpr (kOp == kSign) return sign_of(a);
}

template <ElementwiseOp kOp, class T>
ROOFLAB_HOST_DEVICE T evaluate_floating(T a, T b) {
  using enum ElementwiseOp;
  using std::abs, std::exp, std::log, std::log2, std::tanh, std::sqrt, std::sin, std::cos;
  using std::floor, std::ceil, std::trunc, std::rint;
  if constexpr (kOp == kAdd) return a + b;
  if constexpr (kOp == kSub) return a - b;
  if constexpr (kOp == kMul) return a * b;
  if constexpr (kOp == kDiv) return a / b;
  if constexpr (kOp == kPow) return floating_pow(a, b);
  if constexpr (kOp == kMaximum) return larger(a, b);
  if constexpr (kOp == kMinimum) return smaller(a, b);
  if constexpr (kOp == kFloorDivide) return floating_floor_divide(a, b);
  if constexpr (kOp == kRemainder) return floating_remainder(a, b);
  if constexpr (kOp == kNeg) return -a;
  if constexpr (kOp == kAbs) return abs(a);
  if constexpr (kOp == kRelu) return select(a < T(0), T(0), a);
  if constexpr (kOp == kExp) return exp(a);
  if constexpr (kOp == kLog) return log(a);
  if constexpr (kOp == kLog2) return log2(a);
  if constexpr (kOp == kLog10) return log10_of(a);
  if constexpr (kOp == kTanh) return tanh(a);
  if constexpr (kOp == kSqrt) return sqrt(a);
  if constexpr (kOp == kRsqrt) return inverse_sqrt(a);
  if constexpr (kOp == kSin) return sin(a);
  if constexpr (kOp == kCos) return cos(a);
  if constexpr (kOp == kSigmoid) return sigmoid_of(a);
  if constexpr (kOp == kSilu) return silu_of(a);
  if constexpr (kOp == kFloor) return floor(a);
  if constexpr (kOp == kCeil) return ceil(a);
  if constexpr (kOp == kTrunc) return trunc(a);
  if constexpr (kOp == kRound) return rint(a);
  if constexpr (kOp == kSign) return sign_of(a);
  if constexpr (kOp == kSoftplus) return softplus_of(a);
  if constexpr (kOp == kLogsigmoid) return logsigmoid_of(a);
  if constexpr (kOp == kPrelu) return select(a > T(0), a, a * b);
  if constexpr (kOp == kElu) return elu_of(a, b);
  if constexpr (kOp == kGeglu) return gelu_of(a) * b;
  if constexpr (kOp == kSwiglu) return silu_of(a) * b;
  if constexpr (kOp == kReluBackward) return select(b <= T(0), T(0), a);
  if constexpr (kOp == kTanhBackward) return a * ((T(1) - b) * (T(1) + b));
  if constexpr (kOp == kSigmoidBackward) return a * (b * (T(1) - b));
}

template <ElementwiseOp kOp, class T>
ROOFLAB_HOST_DEVICE T evaluate_bits(T a, T b) {
  using enum ElementwiseOp;
  if constexpr (kOp == kBitwiseAnd) return static_cast<T>(a & b);
  if constexpr (kOp == kBitwiseOr) return static_cast<T>(a | b);
  if constexpr (kOp == kBitwiseXor) return static_cast<T>(a ^ b);
  if constexpr (kOp == kBitwiseNot) return std::is_same_v<T, bool> ? !a : static_cast<T>(~static_cast<int64_t>(a));
}

// Whether the op is defined on elements of type T.
template <class T>
constexpr bool takes(ElementwiseOp op) {
  switch (info(op).domain) {
    case ElementwiseDomain::kFloating: return !std::is_integral_v<T>;
    case ElementwiseDomain::kIntegral: return std::is_integral_v<T>;
    default: return !std::is_same_v<T, bool>;
  }
}

template <ElementwiseOp kOp, class T>
ROOFLAB_HOST_DEVICE T evaluate(T a, T b) {
  if constexpr (info(kOp).domain == ElementwiseDomain::kIntegral)
    return evaluate_bits<kOp>(a, b);
  else if constexpr (std::is_integral_v<T>)
    return evaluate_integer<kOp>(a, b);
  else
    return evaluate_floating<kOp>(a, b);
}

// Of an op with up to three inputs, and the number of nan_to_num. Those that it does not have may be anything.
template <ElementwiseOp kOp, class T>
ROOFLAB_HOST_DEVICE T evaluate(T a, T b, T c, T number = T(0)) {
  using enum ElementwiseOp;
  if constexpr (kOp == kClamp)
    return evaluate<kMinimum>(evaluate<kMaximum>(a, b), c);
  else if constexpr (kOp == kLerp)
    return lerp_of(a, b, c);
  else if constexpr (kOp == kNanToNum)
    return nan_to_num_of(a, b, c, number);
  else
    return evaluate<kOp>(a, b);
}

// A comparison as the set of outcomes that make it true. Two numbers are less, equal, greater or (NaN) unordered.
enum Outcome : unsigned { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

constexpr unsigned outcomes(ElementwiseOp comparison) {
  using enum ElementwiseOp;
  switch (comparison) {
    case kEq: return kEqual;
    case kNe: return kLess | kGreater | kUnordered;
    case kLt: return kLess;
    case kLe: return kLess | kEqual;
    case kGt: return kGreater;
    default: return kGreater | kEqual;
  }
}

template <class T>
ROOFLAB_HOST_DEVICE bool holds(unsigned outcomes, T a, T b) {
  const unsigned outcome = a < b ? kLess : a == b ? kEqual : a > b ? kGreater : kUnordered;
  return (outcomes & outcome) != 0;
}

// The number nearest to `value` in another type; integers saturate and NaN becomes 0, the same on every device.
template <class To, class From>
ROOFLAB_HOST_DEVICE To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr From kLimit = From(uint64_t{1} << (8 * sizeof(To) - 1));  // the smallest number that is too large
    constexpr To kMax = static_cast<To>(~(uint64_t{1} << (8 * sizeof(To) - 1)));
    if (value >= kLimit) return kMax;
    if (value < -kLimit) return static_cast<To>(~kMax);
    return value == value ? static_cast<To>(value) : To(0);
  } else {
    return static_cast<To>(value);
  }
}

// The type in which an operand's scalar is computed.
template <class Compute>
ROOFLAB_HOST_DEVICE Compute scalar_as(const ElementwiseScalar& scalar) {
  if constexpr (std::is_floating_point_v<Compute>)
    return static_cast<Compute>(scalar.real);
  else
    return static_cast<Compute>(scalar.integer);
}

// Calls f(T{}) with the type of a dtype known at run time.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class F>
ROOFLAB_HOST_DEVICE auto with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat64: return f(double{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat16: return f(Half{});
    case DType::kBFloat16: return f(BFloat16{});
    case DType::kInt64: return f(int64_t{});
    case DType::kInt32: return f(int32_t{});
    case DType::kBool: break;
  }
  return f(bool{});
}

// Calls f.template operator()<kOp>() for an op that computes a number, known at run time.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
template <class F>
ROOFLAB_HOST_DEVICE void dispatch_arithmetic(ElementwiseOp op, F&& f) {
  using enum ElementwiseOp;
  switch (op) {
    case kAdd: return f.template operator()<kAdd>();
    case kSub: return f.template operator()<kSub>();
    case kMul: return f.template operator()<kMul>();
    case kDiv: return f.template operator()<kDiv>();
    case kPow: return f.template operator()<kPow>();
    case kMaximum: return f.template operator()<kMaximum>();
    case kMinimum: return f.template operator()<kMinimum>();
    case kFloorDivide: return f.template operator()<kFloorDivide>();
    case kRemainder: return f.template operator()<kRemainder>();
    case kPrelu: return f.template operator()<kPrelu>();
    case kElu: return f.template operator()<kElu>();
    case kGeglu: return f.template operator()<kGeglu>();
    case kSwiglu: return f.template operator()<kSwiglu>();
    case kReluBackward: return f.template operator()<kReluBackward>();
    case kTanhBackward: return f.template operator()<kTanhBackward>();
    case kSigmoidBackward: return f.template operator()<kSigmoidBackward>();
    case kBitwiseAnd: return f.template operator()<kBitwiseAnd>();
    case kBitwiseOr: return f.template operator()<kBitwiseOr>();
    case kBitwiseXor: return f.template operator()<kBitwiseXor>();
    case kNeg: return f.template operator()<kNeg>();
    case kAbs: return f.template operator()<kAbs>();
    case kRelu: return f.template operator()<kRelu>();
    case kExp: return f.template operator()<kExp>();
    case kLog: return f.template operator()<kLog>();
    case kLog2: return f.template operator()<kLog2>();
    case kLog10: return f.template operator()<kLog10>();
    case kTanh: return f.template operator()<kTanh>();
    case kSqrt: return f.template operator()<kSqrt>();
    case kRsqrt: return f.template operator()<kRsqrt>();
    case kSin: return f.template operator()<kSin>();
    case kCos: return f.template operator()<kCos>();
    case kSigmoid: return f.template operator()<kSigmoid>();
    case kSilu: return f.template operator()<kSilu>();
    case kSoftplus: return f.template operator()<kSoftplus>();
    case kLogsigmoid: return f.template operator()<kLogsigmoid>();
    case kFloor: return f.template operator()<kFloor>();
    case kCeil: return f.template operator()<kCeil>();
    case kTrunc: return f.template operator()<kTrunc>();
    case kRound: return f.template operator()<kRound>();
    case kSign: return f.template operator()<kSign>();
    case kBitwiseNot: return f.template operator()<kBitwiseNot>();
    case kClamp: return f.template operator()<kClamp>();
    case kLerp: return f.template operator()<kLerp>();
    case kNanToNum: return f.template operator()<kNanToNum>();
    default: return;
  }
}

}  // namespace rooflab::kernels
